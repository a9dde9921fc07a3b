"""The Python API: thin functions, synchronous where users expect that."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from fairtrial import pipeline
from fairtrial.analyse import Run
from fairtrial.config import Suite, judge_named, variables_of
from fairtrial.core.accepted import case_problems, score_answer
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case, ScorerSpec, read_expected
from fairtrial.core.options import build_scorer
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.judging.calibration import Calibration
from fairtrial.stats import Aggregate
from fairtrial.store import Store
from fairtrial.workflows.calibrate import acalibrate
from fairtrial.workflows.resume import arescore, aresume

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Comparison, Comparisons
    from fairtrial.analyse.series import MultiRun
    from fairtrial.stats import RunMeansTest

T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and return its result, even if an event loop is already running (as in a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def arun(suite: Suite | Mapping[str, Any] | str | Path, *, store: str | None = None) -> Run:
    """Run a suite (loaded, or given by its path) and store the result."""
    if isinstance(suite, Mapping):
        suite = Suite.from_dict(suite)
    if not isinstance(suite, Suite):
        suite = pipeline.load(suite)
    return await pipeline.arun(suite, store=Store(store))


def run(suite: Suite | Mapping[str, Any] | str | Path, *, store: str | None = None) -> Run:
    """Run a suite (loaded, or given by its path) and store the result."""
    return wait_for(arun(suite, store=store))


def open_run(name: str = "latest", *, store: str | None = None) -> Run:
    """Open a stored run by its id, an unambiguous prefix of it, or `latest`."""
    return Run.find(name, Store(store, create=False))


def resume(run: Run, *, suite: Suite | None = None) -> Run:
    """Continue a run that was stopped; no finished call is repeated."""
    return wait_for(aresume(run.id, store=run.store, functions=suite.functions if suite else None))


def retry(run: Run, *, suite: Suite | None = None) -> Run:
    """Repeat the failed trials of a run."""
    functions = suite.functions if suite else None
    return wait_for(aresume(run.id, store=run.store, mode="retry", functions=functions))


def rescore(run: Run, scorer: str | ScorerSpec | None = None, *, judge: str | None = None) -> Run:
    """Score the stored answers of a run again, with another scorer or judge."""
    spec = {"type": scorer} if isinstance(scorer, str) else scorer
    return wait_for(arescore(run.id, scorer=spec, judge=judge, store=run.store))


def score(scorer: str, /, *, response: str, expected: Any = None, input: str = "", **options: Any) -> Score | Unscored:
    """Score one answer: `score("numeric", response="about 42", expected=42, tolerance=0.01)`.

    `expected` is text, a number, a mapping (compared as JSON), or a list of those, any of which is right.
    """
    case = Case(id="case", input=input, expected=read_expected(expected))
    built = build_scorer({"type": scorer, **options})
    problems = list(case_problems(built, case, Path()))
    if problems:
        raise FairtrialError("; ".join(problems))
    return wait_for(score_answer(built, ScoreContext(response=response, case=case, folder=Path())))


def calibrate(
    judge: str,
    *,
    samples: str | Path | None = None,
    scorer: str | ScorerSpec | None = None,
    runs: int = 1,
    store: str | None = None,
) -> Calibration:
    """Calibrate a judge with answers of known quality; returns samples, summary, rating and recommendation."""
    variables = variables_of()
    spec = judge_named(judge, variables, Path())
    work = acalibrate(
        spec,
        scorer={"type": scorer} if isinstance(scorer, str) else scorer,
        samples=Path(samples) if samples else None,
        runs=runs,
        variables=variables,
        store=Store(store),
    )
    return wait_for(work)


def aggregate(run: Run) -> dict[str, Aggregate]:
    """Return each arm's mean, standard deviation, minimum, maximum, count, weight and interval; scores are 0–1."""
    return {arm.arm: arm.aggregate for arm in run.arms}


def multi_run(runs: Sequence[Run]) -> dict[str, MultiRun]:
    """Return each arm's run ids, scores, mean, standard deviation, minimum, maximum and interval over several runs."""
    from fairtrial.analyse.series import over_runs

    return over_runs(runs)


def compare_models(runs: Sequence[Run], a: str, b: str) -> RunMeansTest | None:
    """Compare two arms by their run means (pooled Student t); None with fewer than two runs of either.

    The result holds for these exact cases. It does not say which arm is better on similar cases.
    """
    from fairtrial.analyse.series import compare_run_means

    return compare_run_means(runs, a, b)


@overload
def compare(
    runs: Run | Sequence[Run],
    a: str,
    b: str,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
) -> Comparison: ...
@overload
def compare(
    runs: Run | Sequence[Run],
    a: None = None,
    b: None = None,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
) -> Comparisons: ...
def compare(
    runs: Run | Sequence[Run],
    a: str | None = None,
    b: str | None = None,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
) -> Comparison | Comparisons:
    """Compare arms on the cases they share; the verdict may be that nobody can tell. Scores and margin are 0–1.

    With two names, compares that pair over all runs that have both; without names, every pair. The runs of a series
    count as one. The metric defaults to the suite's primary metric, else the score (""). `largest` is the largest
    possible difference on a case, if that is less than the scale allows.
    """
    from fairtrial.analyse.compare import compare as compare_scores
    from fairtrial.analyse.score_table import choose, pooled, read_scores, sources_of

    if (a is None) != (b is None):
        raise FairtrialError("give two arms, or none")
    names = () if a is None or b is None else (a, b)
    scores = read_scores(pooled(sources_of(runs), names))
    comparisons = compare_scores(scores, choose(scores, names), metric=metric, margin=margin, largest=largest)
    return comparisons.pairs[0] if names else comparisons
