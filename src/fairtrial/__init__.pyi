# Written by `python -m docs.generate`; do not edit.
"""fairtrial: a fair trial for every model, agent and prompt.

import fairtrial as ft

suite = ft.Suite(name="capitals", targets=["openai:gpt-6-luna", my_function],
                 cases=[ft.Case("Capital of France?", expected="Paris")])
run = ft.run(suite)  # or a path, or: await ft.arun(suite)
for arm, numbers in ft.aggregate(run).items():
    print(arm, numbers.mean, numbers.ci95)
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from fairtrial import plugins
from fairtrial.analyse.comparison import Comparison, Comparisons
from fairtrial.analyse.gate import Gate
from fairtrial.analyse.items import CaseAnalysis
from fairtrial.analyse.kind_means import KindMeans
from fairtrial.analyse.pairs import PairsSummary
from fairtrial.analyse.planning import Power
from fairtrial.analyse.rank import Ranking
from fairtrial.analyse.run import Run, RunSeries
from fairtrial.analyse.series import MultiRun
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.analyse.tool_report import ToolReport
from fairtrial.analyse.variance import Variance
from fairtrial.api.given import AnyJudge, AnyRun, AnyRuns, AnyScorer, AnySuite
from fairtrial.api.judging import Labels
from fairtrial.api.running import Continued
from fairtrial.config import RunOptions, Suite
from fairtrial.config.python import Case
from fairtrial.core import errors
from fairtrial.core.answer import Answer, Failure
from fairtrial.core.errors import FairtrialError
from fairtrial.core.score import Score, Unscored
from fairtrial.judging.calibration import Calibration
from fairtrial.pipeline import load as load_suite
from fairtrial.stats import Aggregate, RunMeansTest
from fairtrial.tracks.audit.auditing import AT_ONCE, REPEATS, SECONDS
from fairtrial.tracks.audit.result import Audit
from fairtrial.tracks.interchange.import_traces import TracesRead
from fairtrial.tracks.optimisation.analysis import OptimisationReport

__all__ = [
    "Answer",
    "Audit",
    "Calibration",
    "Case",
    "CaseAnalysis",
    "Comparison",
    "Comparisons",
    "Failure",
    "FairtrialError",
    "Gate",
    "KindMeans",
    "Labels",
    "OptimisationReport",
    "PairsSummary",
    "Power",
    "Ranking",
    "Run",
    "RunOptions",
    "RunSeries",
    "Score",
    "Suite",
    "ToolReport",
    "TrialRecord",
    "Unscored",
    "Variance",
    "aaggregate",
    "aaudit",
    "acalibrate",
    "acases",
    "acompare",
    "acompare_models",
    "aexport",
    "agate",
    "aggregate",
    "aimport_log",
    "aimport_results",
    "aimport_traces",
    "alabel",
    "amulti_run",
    "aopen_run",
    "apairwise",
    "apower",
    "arank",
    "areport",
    "arescore",
    "aresume",
    "aretry",
    "arun",
    "ascore",
    "astyles",
    "atools",
    "audit",
    "avariance",
    "calibrate",
    "cases",
    "compare",
    "compare_models",
    "errors",
    "export",
    "gate",
    "import_log",
    "import_results",
    "import_traces",
    "label",
    "load_suite",
    "multi_run",
    "open_run",
    "pairwise",
    "plugins",
    "power",
    "rank",
    "report",
    "rescore",
    "resume",
    "retry",
    "run",
    "score",
    "styles",
    "tools",
    "variance",
]

def aggregate(run: Run) -> dict[str, Aggregate]:
    """Return each arm's mean, standard deviation, minimum, maximum, count, weight and interval; scores are 0–1."""

async def aaggregate(run: Run) -> dict[str, Aggregate]:
    """Return each arm's mean, standard deviation, minimum, maximum, count, weight and interval; scores are 0–1.

    The async twin of `aggregate`.
    """

def audit(
    suite: AnySuite,
    *,
    probes: Sequence[str] = (),
    skip: Sequence[str] = (),
    repeats: int = REPEATS,
    concurrency: int = AT_ONCE,
    timeout: float = SECONDS,
) -> Audit:
    """Check the tasks of a suite before money is spent: solutions pass, doing nothing and known cheats fail.

    No target is asked. The suite's own code runs: setup commands, checks, solutions.

    Args:
        suite: A suite, its file, or a mapping with its keys.
        probes: Only these probes, such as `nothing`; default: all.
        skip: All probes but these.
        repeats: How often every solution must pass.
        concurrency: How many attempts are made at the same time.
        timeout: Seconds that an attempt may take, and its check.
    """

async def aaudit(
    suite: AnySuite,
    *,
    probes: Sequence[str] = (),
    skip: Sequence[str] = (),
    repeats: int = REPEATS,
    concurrency: int = AT_ONCE,
    timeout: float = SECONDS,
) -> Audit:
    """Check the tasks of a suite before money is spent: solutions pass, doing nothing and known cheats fail.

    No target is asked. The suite's own code runs: setup commands, checks, solutions.

    Args:
        suite: A suite, its file, or a mapping with its keys.
        probes: Only these probes, such as `nothing`; default: all.
        skip: All probes but these.
        repeats: How often every solution must pass.
        concurrency: How many attempts are made at the same time.
        timeout: Seconds that an attempt may take, and its check.
    """

def calibrate(
    judge: AnyJudge | None = None,
    *,
    suite: AnySuite | None = None,
    samples: str | Path | None = None,
    scorer: AnyScorer | None = None,
    runs: int = 1,
    store: str | None = None,
) -> Calibration:
    """Calibrate a judge with answers of known quality; returns samples, summary, rating and recommendation.

    Args:
        judge: A model's name, or a function that is given the judge's prompt and returns its reply.
        suite: Calibrate the judge of this suite, or `judge` with its providers, instructions and scorer.
        samples: A file with samples of your own.
        scorer: The scorer that the judge marks for: `llm_judge`, `golden_judge`, or a mapping with options.
        runs: Ask this many times, to measure how much its marks vary.
        store: Where the result is stored.
    """

async def acalibrate(
    judge: AnyJudge | None = None,
    *,
    suite: AnySuite | None = None,
    samples: str | Path | None = None,
    scorer: AnyScorer | None = None,
    runs: int = 1,
    store: str | None = None,
) -> Calibration:
    """Calibrate a judge with answers of known quality; returns samples, summary, rating and recommendation.

    Args:
        judge: A model's name, or a function that is given the judge's prompt and returns its reply.
        suite: Calibrate the judge of this suite, or `judge` with its providers, instructions and scorer.
        samples: A file with samples of your own.
        scorer: The scorer that the judge marks for: `llm_judge`, `golden_judge`, or a mapping with options.
        runs: Ask this many times, to measure how much its marks vary.
        store: Where the result is stored.
    """

@overload
def cases(runs: AnyRuns = "latest", *, subset: None = None, store: str | None = None) -> CaseAnalysis:
    """Analyse the cases themselves: which are hard, do not separate the arms, or probably have a wrong expected answer.

    With `subset`, returns the ids of this many cases that represent all of them.
    """

@overload
def cases(runs: AnyRuns = "latest", *, subset: int, store: str | None = None) -> list[str]: ...
@overload
async def acases(runs: AnyRuns = "latest", *, subset: None = None, store: str | None = None) -> CaseAnalysis:
    """Analyse the cases themselves: which are hard, do not separate the arms, or probably have a wrong expected answer.

    With `subset`, returns the ids of this many cases that represent all of them.


    The async twin of `cases`.
    """

@overload
async def acases(runs: AnyRuns = "latest", *, subset: int, store: str | None = None) -> list[str]: ...
@overload
def compare(
    runs: AnyRuns,
    a: str,
    b: str,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
    store: str | None = None,
) -> Comparison:
    """Compare arms on the cases they share; the verdict may be that nobody can tell. Scores and margin are 0–1.

    With two names, compares that pair over all runs that have both; without names, every pair. The runs of a series
    count as one. The metric defaults to the suite's primary metric, else the score (""). `largest` is the largest
    possible difference on a case, if that is less than the scale allows.
    """

@overload
def compare(
    runs: AnyRuns,
    a: None = None,
    b: None = None,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
    store: str | None = None,
) -> Comparisons: ...
@overload
async def acompare(
    runs: AnyRuns,
    a: str,
    b: str,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
    store: str | None = None,
) -> Comparison:
    """Compare arms on the cases they share; the verdict may be that nobody can tell. Scores and margin are 0–1.

    With two names, compares that pair over all runs that have both; without names, every pair. The runs of a series
    count as one. The metric defaults to the suite's primary metric, else the score (""). `largest` is the largest
    possible difference on a case, if that is less than the scale allows.


    The async twin of `compare`.
    """

@overload
async def acompare(
    runs: AnyRuns,
    a: None = None,
    b: None = None,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
    store: str | None = None,
) -> Comparisons: ...
def compare_models(runs: Sequence[Run], a: str, b: str) -> RunMeansTest | None:
    """Compare two arms by their run means (pooled Student t); None with fewer than two runs of either.

    The result holds for these exact cases. It does not say which arm is better on similar cases.
    """

async def acompare_models(runs: Sequence[Run], a: str, b: str) -> RunMeansTest | None:
    """Compare two arms by their run means (pooled Student t); None with fewer than two runs of either.

    The result holds for these exact cases. It does not say which arm is better on similar cases.


    The async twin of `compare_models`.
    """

def export(run: AnyRun, file: str | Path, *, format: str | None = None, store: str | None = None) -> Path:
    """Write a run to a file by its ending: json, jsonl, csv, parquet, junit.xml, md, html; `format` overrides it."""

async def aexport(run: AnyRun, file: str | Path, *, format: str | None = None, store: str | None = None) -> Path:
    """Write a run to a file by its ending: json, jsonl, csv, parquet, junit.xml, md, html; `format` overrides it.

    The async twin of `export`.
    """

def gate(
    run: AnyRuns = "latest",
    *,
    min_score: float | None = None,
    against: AnyRuns | None = None,
    margin: float | None = None,
    min_coverage: float | None = None,
    arms: Sequence[str] = (),
    metric: str = "",
    these_cases: bool = False,
    store: str | None = None,
) -> Gate:
    """Pass or fail a run; the result is true only if it passed: `assert ft.gate(run, min_score=80)`.

    `min_score`, `margin` and `min_coverage` are in points of 100, as on the command line; a metric is on its own scale.
    A minimum is met when the whole 95 % interval is above it; a regression against another run is ruled out when the
    whole interval of the difference lies above −margin. `result` is `passed`, `failed` or `cannot tell`. `against` may
    also be `branch:main`, `commit:3f2a`, `file:baseline.db.gz`, `notes:` or `auto`; if there is no such run, nobody can
    tell. At least 95 % of the trials must have a score, unless `min_coverage` says otherwise. The suite's `gate`
    applies too, including its baseline.
    """

async def agate(
    run: AnyRuns = "latest",
    *,
    min_score: float | None = None,
    against: AnyRuns | None = None,
    margin: float | None = None,
    min_coverage: float | None = None,
    arms: Sequence[str] = (),
    metric: str = "",
    these_cases: bool = False,
    store: str | None = None,
) -> Gate:
    """Pass or fail a run; the result is true only if it passed: `assert ft.gate(run, min_score=80)`.

    `min_score`, `margin` and `min_coverage` are in points of 100, as on the command line; a metric is on its own scale.
    A minimum is met when the whole 95 % interval is above it; a regression against another run is ruled out when the
    whole interval of the difference lies above −margin. `result` is `passed`, `failed` or `cannot tell`. `against` may
    also be `branch:main`, `commit:3f2a`, `file:baseline.db.gz`, `notes:` or `auto`; if there is no such run, nobody can
    tell. At least 95 % of the trials must have a score, unless `min_coverage` says otherwise. The suite's `gate`
    applies too, including its baseline.


    The async twin of `gate`.
    """

def import_log(
    files: Sequence[str | Path] | str | Path,
    *,
    format: str | None = None,
    group_by: Literal["cwd", "branch", "model", "agent", "day"] | None = None,
    score: str | None = None,
    scale: tuple[float, float] | dict[str, tuple[float, float]] | None = None,
    store: str | None = None,
) -> Run | list[Run]:
    """Import logs of agents' sessions as runs: one run, or a list with one for each group.

    `files` are logs or folders with logs. Every session is a trial; its case is its user's first message, its arm the
    agent with its model. `score` names the reward that becomes the score, where logs have several, and `scale` is its
    worst and best value. Importing the same logs again returns the same run.
    """

async def aimport_log(
    files: Sequence[str | Path] | str | Path,
    *,
    format: str | None = None,
    group_by: Literal["cwd", "branch", "model", "agent", "day"] | None = None,
    score: str | None = None,
    scale: tuple[float, float] | dict[str, tuple[float, float]] | None = None,
    store: str | None = None,
) -> Run | list[Run]:
    """Import logs of agents' sessions as runs: one run, or a list with one for each group.

    `files` are logs or folders with logs. Every session is a trial; its case is its user's first message, its arm the
    agent with its model. `score` names the reward that becomes the score, where logs have several, and `scale` is its
    worst and best value. Importing the same logs again returns the same run.
    """

def import_results(
    data: Any,
    *,
    format: str | None = None,
    case: str | None = None,
    arm: str | None = None,
    score: str | None = None,
    repeat: str | None = None,
    category: str | None = None,
    difficulty: str | None = None,
    cluster: str | None = None,
    cost: str | None = None,
    latency: str | None = None,
    input: str | None = None,
    expected: str | None = None,
    answer: str | None = None,
    scale: tuple[float, float] | dict[str, tuple[float, float]] | None = None,
    store: str | None = None,
) -> Run | list[Run]:
    """Import results of another tool as runs: one run, or a list if there are several.

    `data` is a file, a folder, a list of them, or a data frame. In a table, `case`, `arm`, `score` and so on name its
    columns; in a log, `score` names the metric that becomes the score. `scale` is the worst and best value of the
    score, or of several metrics by name. Importing the same data again returns the same run.
    """

async def aimport_results(
    data: Any,
    *,
    format: str | None = None,
    case: str | None = None,
    arm: str | None = None,
    score: str | None = None,
    repeat: str | None = None,
    category: str | None = None,
    difficulty: str | None = None,
    cluster: str | None = None,
    cost: str | None = None,
    latency: str | None = None,
    input: str | None = None,
    expected: str | None = None,
    answer: str | None = None,
    scale: tuple[float, float] | dict[str, tuple[float, float]] | None = None,
    store: str | None = None,
) -> Run | list[Run]:
    """Import results of another tool as runs: one run, or a list if there are several.

    `data` is a file, a folder, a list of them, or a data frame. In a table, `case`, `arm`, `score` and so on name its
    columns; in a log, `score` names the metric that becomes the score. `scale` is the worst and best value of the
    score, or of several metrics by name. Importing the same data again returns the same run.
    """

def import_traces(
    files: Sequence[str | Path] | str | Path,
    output: str | Path = "suite.yaml",
    *,
    where: Mapping[str, Any] | None = None,
    by: Literal["call", "trace", "session"] = "call",
    sample: int | None = None,
    seed: int = 0,
    expected: str | None = None,
    redact: Sequence[str] = (),
    form: str | None = None,
    target: str | None = None,
) -> TracesRead:
    """Turn recorded calls (OTLP, Langfuse, Logfire) into a suite or a dataset; returns what was read and left out.

    The options are those of `fairtrial import traces`.
    """

async def aimport_traces(
    files: Sequence[str | Path] | str | Path,
    output: str | Path = "suite.yaml",
    *,
    where: Mapping[str, Any] | None = None,
    by: Literal["call", "trace", "session"] = "call",
    sample: int | None = None,
    seed: int = 0,
    expected: str | None = None,
    redact: Sequence[str] = (),
    form: str | None = None,
    target: str | None = None,
) -> TracesRead:
    """Turn recorded calls (OTLP, Langfuse, Logfire) into a suite or a dataset; returns what was read and left out.

    The options are those of `fairtrial import traces`.


    The async twin of `import_traces`.
    """

def label(
    run: AnyRun = "latest",
    labels: str | Path | Mapping[str, float | bool] | None = None,
    *,
    sample: int | None = None,
    to: str | Path | None = None,
    arms: Sequence[str] = (),
    seed: int | None = None,
    by: str = "person",
    store: str | None = None,
) -> Labels:
    """Let people label answers, and correct a judge's scores with the labels.

    `label(run, sample=30, to="marks.csv")` draws answers at random, blind; `label(run, "marks.csv")` reads the labels
    in it (0 to 100, or pass and fail); `label(run, {trial_id: 0.8})` takes labels from 0 to 1. With neither, returns
    the result of the labels so far.
    """

async def alabel(
    run: AnyRun = "latest",
    labels: str | Path | Mapping[str, float | bool] | None = None,
    *,
    sample: int | None = None,
    to: str | Path | None = None,
    arms: Sequence[str] = (),
    seed: int | None = None,
    by: str = "person",
    store: str | None = None,
) -> Labels:
    """Let people label answers, and correct a judge's scores with the labels.

    `label(run, sample=30, to="marks.csv")` draws answers at random, blind; `label(run, "marks.csv")` reads the labels
    in it (0 to 100, or pass and fail); `label(run, {trial_id: 0.8})` takes labels from 0 to 1. With neither, returns
    the result of the labels so far.


    The async twin of `label`.
    """

def multi_run(runs: Sequence[Run]) -> dict[str, MultiRun]:
    """Return each arm's run ids, scores, mean, standard deviation, minimum, maximum and interval over several runs."""

async def amulti_run(runs: Sequence[Run]) -> dict[str, MultiRun]:
    """Return each arm's run ids, scores, mean, standard deviation, minimum, maximum and interval over several runs.

    The async twin of `multi_run`.
    """

def open_run(name: str = "latest", *, store: str | None = None) -> Run:
    """Open a stored run by its id, an unambiguous prefix of it, a tag, or `latest`."""

async def aopen_run(name: str = "latest", *, store: str | None = None) -> Run:
    """Open a stored run by its id, an unambiguous prefix of it, a tag, or `latest`.

    The async twin of `open_run`.
    """

def pairwise(
    run: AnyRun = "latest",
    *,
    judge: AnyJudge | None = None,
    arms: Sequence[str] = (),
    instructions: str = "",
    budget_usd: float | None = None,
    suite: Suite | None = None,
    store: str | None = None,
) -> PairsSummary:
    """Let a judge compare the stored answers of a run, two arms at a time, in both orders.

    A preference that changes with the order counts as a tie. Pairs that were compared before are not judged again.
    `judge` is a model's name, or a function that is given the judge's prompt and returns its reply; by default, the
    judges of the run. `suite` gives functions that cannot be imported again, in a new session.
    """

async def apairwise(
    run: AnyRun = "latest",
    *,
    judge: AnyJudge | None = None,
    arms: Sequence[str] = (),
    instructions: str = "",
    budget_usd: float | None = None,
    suite: Suite | None = None,
    store: str | None = None,
) -> PairsSummary:
    """Let a judge compare the stored answers of a run, two arms at a time, in both orders.

    A preference that changes with the order counts as a tie. Pairs that were compared before are not judged again.
    `judge` is a model's name, or a function that is given the judge's prompt and returns its reply; by default, the
    judges of the run. `suite` gives functions that cannot be imported again, in a new session.
    """

def power(
    runs: AnyRuns = "latest",
    *,
    delta: float | Sequence[float] | None = None,
    margin: float | Sequence[float] = (),
    arms: tuple[str, str] | None = None,
    power: float = 0.8,
    looks: int = 0,
    store: str | None = None,
) -> Power:
    """Estimate how many cases or repeats are needed to detect a difference; `delta` and `margin` are in points of 100.

    With `looks`, also of how many a run with that many planned looks asks on average.
    The numbers allow for the uncertainty of the spread measured in the runs: the fewer cases, the more are needed.
    """

async def apower(
    runs: AnyRuns = "latest",
    *,
    delta: float | Sequence[float] | None = None,
    margin: float | Sequence[float] = (),
    arms: tuple[str, str] | None = None,
    power: float = 0.8,
    looks: int = 0,
    store: str | None = None,
) -> Power:
    """Estimate how many cases or repeats are needed to detect a difference; `delta` and `margin` are in points of 100.

    With `looks`, also of how many a run with that many planned looks asks on average.
    The numbers allow for the uncertainty of the spread measured in the runs: the fewer cases, the more are needed.


    The async twin of `power`.
    """

def rank(
    runs: AnyRuns = "latest",
    *,
    by: Literal["scores", "verdicts", "votes", "both"] | None = None,
    metric: str | None = None,
    control_style: bool = False,
    store: str | None = None,
) -> Ranking:
    """Rank the arms on their common cases, with the range of ranks that the comparisons leave open.

    `by` is where ratings come from; by default, the first available of verdicts, votes and scores.
    """

async def arank(
    runs: AnyRuns = "latest",
    *,
    by: Literal["scores", "verdicts", "votes", "both"] | None = None,
    metric: str | None = None,
    control_style: bool = False,
    store: str | None = None,
) -> Ranking:
    """Rank the arms on their common cases, with the range of ranks that the comparisons leave open.

    `by` is where ratings come from; by default, the first available of verdicts, votes and scores.


    The async twin of `rank`.
    """

def report(
    run: AnyRuns = "latest",
    file: str | Path = "report.html",
    *,
    site: str | Path | None = None,
    base_url: str = "",
    store: str | None = None,
) -> Path:
    """Write a run as one self-contained HTML page that opens from disk, without a network.

    `site` names a folder instead: static pages of one or more runs, for any static host. `base_url` is their
    future address, for link previews.
    """

async def areport(
    run: AnyRuns = "latest",
    file: str | Path = "report.html",
    *,
    site: str | Path | None = None,
    base_url: str = "",
    store: str | None = None,
) -> Path:
    """Write a run as one self-contained HTML page that opens from disk, without a network.

    `site` names a folder instead: static pages of one or more runs, for any static host. `base_url` is their
    future address, for link previews.


    The async twin of `report`.
    """

def rescore(
    run: AnyRun,
    scorer: AnyScorer | None = None,
    *,
    judge: AnyJudge | None = None,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run:
    """Score the stored answers of a run again, with another scorer (a name, a mapping or a function) or judge.

    No new answers are requested, and the earlier scores stay in the store. A judge is a model's name, or a function
    that is given the judge's prompt and returns its reply.
    """

async def arescore(
    run: AnyRun,
    scorer: AnyScorer | None = None,
    *,
    judge: AnyJudge | None = None,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run:
    """Score the stored answers of a run again, with another scorer (a name, a mapping or a function) or judge.

    No new answers are requested, and the earlier scores stay in the store. A judge is a model's name, or a function
    that is given the judge's prompt and returns its reply.
    """

@overload
def resume(
    run: Continued,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Continued:
    """Continue a run or a series that was stopped; no finished call is repeated.

    A series continues with its missing runs. The name of a run in a series means the whole series,
    as on the command line; `resume(open_run(name))` continues that run alone.

    Args:
        run: A run, a series, or the name of either.
        suite: Gives functions that cannot be imported again; needed in a new session.
        store: Where it is stored.
        progress: Whether to show a line of progress; default: in notebooks and terminals.
        engine: Where trials are carried out, as for `run`, whatever carried them out before.
        workers: As for `run`.
    """

@overload
def resume(
    run: str,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run | RunSeries: ...
@overload
async def aresume(
    run: Continued,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Continued:
    """Continue a run or a series that was stopped; no finished call is repeated.

    A series continues with its missing runs. The name of a run in a series means the whole series,
    as on the command line; `resume(open_run(name))` continues that run alone.

    Args:
        run: A run, a series, or the name of either.
        suite: Gives functions that cannot be imported again; needed in a new session.
        store: Where it is stored.
        progress: Whether to show a line of progress; default: in notebooks and terminals.
        engine: Where trials are carried out, as for `run`, whatever carried them out before.
        workers: As for `run`.
    """

@overload
async def aresume(
    run: str,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run | RunSeries: ...
def retry(
    run: AnyRun,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run:
    """Repeat the failed trials of a run; `suite`, `engine` and `workers` as for `resume`."""

async def aretry(
    run: AnyRun,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run:
    """Repeat the failed trials of a run; `suite`, `engine` and `workers` as for `resume`."""

@overload
def run(
    suite: AnySuite,
    *,
    options: RunOptions | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run:
    """Run a suite and store the result. Everything is durable before it is counted; `resume` continues what stopped.

    Args:
        suite: A suite, a mapping with the keys of a suite file, or the path of one.
        runs: Run it this many times in sequence, as a series; the result is a list of runs.
        options: Which part of a file or mapping to run, such as `RunOptions(limit=5)`: 5 random cases, always the same.
        store: Where it is stored: `sqlite:///file.db` or a file name; default: `FAIRTRIAL_STORE`, or else
            `.fairtrial/fairtrial.db`.
        progress: Whether to show a line of progress; default: in notebooks and terminals.
        engine: Where trials are carried out: `local`, `ray`, or `ray:ADDRESS` for the cluster at that address.
        workers: Processes that carry them out: of this machine, or at most this many on a cluster.
    """

@overload
def run(
    suite: AnySuite,
    *,
    runs: int,
    options: RunOptions | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> RunSeries: ...
@overload
async def arun(
    suite: AnySuite,
    *,
    options: RunOptions | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run:
    """Run a suite and store the result. Everything is durable before it is counted; `resume` continues what stopped.

    Args:
        suite: A suite, a mapping with the keys of a suite file, or the path of one.
        runs: Run it this many times in sequence, as a series; the result is a list of runs.
        options: Which part of a file or mapping to run, such as `RunOptions(limit=5)`: 5 random cases, always the same.
        store: Where it is stored: `sqlite:///file.db` or a file name; default: `FAIRTRIAL_STORE`, or else
            `.fairtrial/fairtrial.db`.
        progress: Whether to show a line of progress; default: in notebooks and terminals.
        engine: Where trials are carried out: `local`, `ray`, or `ray:ADDRESS` for the cluster at that address.
        workers: Processes that carry them out: of this machine, or at most this many on a cluster.
    """

@overload
async def arun(
    suite: AnySuite,
    *,
    runs: int,
    options: RunOptions | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> RunSeries: ...
def score(
    scorer: AnyScorer, /, *, response: str, expected: Any = None, input: str = "", **options: Any
) -> Score | Unscored:
    """Score one answer: `score("numeric", response="about 42", expected=42, tolerance=0.01)`.

    `expected` is text, a number, a mapping (compared as JSON), or a list of those, any of which is right. A scorer that
    compares embeddings (`similar`) asks its `embedder` for them.
    """

async def ascore(
    scorer: AnyScorer, /, *, response: str, expected: Any = None, input: str = "", **options: Any
) -> Score | Unscored:
    """Score one answer: `score("numeric", response="about 42", expected=42, tolerance=0.01)`.

    `expected` is text, a number, a mapping (compared as JSON), or a list of those, any of which is right. A scorer that
    compares embeddings (`similar`) asks its `embedder` for them.
    """

def styles(
    run: AnyRun = "latest", *, weights: tuple[float, float] = (0.5, 0.5), store: str | None = None
) -> OptimisationReport:
    """Compare the prompt styles of a run on optimisation problems: following, feasibility, gaps and composites.

    `weights` are those of following and of closeness to the optimum in the composites.
    """

async def astyles(
    run: AnyRun = "latest", *, weights: tuple[float, float] = (0.5, 0.5), store: str | None = None
) -> OptimisationReport:
    """Compare the prompt styles of a run on optimisation problems: following, feasibility, gaps and composites.

    `weights` are those of following and of closeness to the optimum in the composites.


    The async twin of `styles`.
    """

def tools(run: AnyRun = "latest", *, store: str | None = None) -> ToolReport:
    """Show whether the MCP servers, tools and skills of a run help, what they cost, and how agents used them."""

async def atools(run: AnyRun = "latest", *, store: str | None = None) -> ToolReport:
    """Show whether the MCP servers, tools and skills of a run help, what they cost, and how agents used them.

    The async twin of `tools`.
    """

def variance(run: AnyRun = "latest", *, case_cost: float = 1.0, store: str | None = None) -> Variance:
    """Show where the uncertainty of a run's means comes from, and where the next dollar helps most."""

async def avariance(run: AnyRun = "latest", *, case_cost: float = 1.0, store: str | None = None) -> Variance:
    """Show where the uncertainty of a run's means comes from, and where the next dollar helps most.

    The async twin of `variance`.
    """
