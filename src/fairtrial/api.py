"""The Python API: thin functions, synchronous where users expect that, each with an async twin (`run`, `arun`).

Scores are 0–1 in Python. Only what people type as points is in points, as on the command line: `min_score`, and the
`delta` and `margin` of `power` and `gate`. A run may be given as an object, its id, a prefix of it, a tag, or `latest`.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

import msgspec

from fairtrial import pipeline
from fairtrial.analyse import Run
from fairtrial.config import RunOptions, Suite, judge_named, variables_of
from fairtrial.core.accepted import case_problems, score_answer
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case, ScorerSpec, read_expected
from fairtrial.core.functions import Functions
from fairtrial.core.options import build_scorer
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.engine.engines import where_of
from fairtrial.judging.calibration import Calibration
from fairtrial.stats import Aggregate
from fairtrial.store import Store
from fairtrial.workflows import calibrate as calibrating
from fairtrial.workflows import pairwise as pairing
from fairtrial.workflows import resume as resuming
from fairtrial.workflows.embedding import embedding
from fairtrial.workflows.following import follower
from fairtrial.workflows.series import arun_series

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Comparison, Comparisons
    from fairtrial.analyse.gate import Gate
    from fairtrial.analyse.items import CaseAnalysis
    from fairtrial.analyse.labels import ArmLabels
    from fairtrial.analyse.pairs import PairsSummary
    from fairtrial.analyse.planning import Power, Variance
    from fairtrial.analyse.rank import Ranking
    from fairtrial.analyse.score_table import ScoreTable, Source
    from fairtrial.analyse.series import MultiRun, RunSeries
    from fairtrial.stats import RunMeansTest
    from fairtrial.workflows.traces import TracesRead

T = TypeVar("T")
P = ParamSpec("P")
AnySuite = Suite | Mapping[str, Any] | str | Path
AnyRun = Run | str
AnyRuns = Run | str | Sequence[Run | str]
AnyScorer = str | Mapping[str, Any] | Callable[..., Any]
AnyJudge = str | Callable[..., Any]
_FEWEST_POINTS = 0.2  # a smaller difference was meant as a share of 1


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and return its result, even if an event loop is already running (as in a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _in_thread(work)


def _in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread with a loop of its own; an interrupt ends it and keeps what is done."""
    results: list[T] = []
    errors: list[BaseException] = []
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def noted() -> T:
        started.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    def target() -> None:
        try:
            results.append(asyncio.run(noted()))
        except BaseException as error:  # whatever it is, it is raised where the caller waits
            errors.append(error)

    thread = threading.Thread(target=target, name="fairtrial-loop", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        for loop, task in started:
            if task is not None and not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if errors:
        raise errors[0]
    return results[0]


def _twin(function: Callable[P, T], name: str) -> Callable[P, Awaitable[T]]:
    """Return the async twin of a function that reads and computes: the same in a thread."""

    @functools.wraps(function)
    async def twin(*args: P.args, **keywords: P.kwargs) -> T:
        return await asyncio.to_thread(function, *args, **keywords)

    twin.__name__ = twin.__qualname__ = name
    twin.__doc__ = f"{function.__doc__}\n\n    The async twin of `{function.__name__}`.\n    "
    return twin


def _waiting(function: Callable[P, Coroutine[Any, Any, T]], name: str) -> Callable[P, T]:
    """Return the sync twin of an async function."""

    @functools.wraps(function)
    def twin(*args: P.args, **keywords: P.kwargs) -> T:
        return wait_for(function(*args, **keywords))

    twin.__name__ = twin.__qualname__ = name
    return twin


def _loaded(suite: AnySuite, options: RunOptions | None) -> Suite:
    if isinstance(suite, Suite):
        if options is not None:
            raise FairtrialError("this suite is loaded already: give `options` where it is loaded or made")
        return suite
    if isinstance(suite, Mapping):
        return Suite.from_dict({**suite}, options=options)
    return pipeline.load(suite, options, whole=False)


def _opened(run: AnyRun, store: str | None = None) -> Run:
    return run if isinstance(run, Run) else open_run(run, store=store)


def _first_of(name: str, store: str | None) -> Run:
    """Return the run with this name, or the first of the series with this name."""
    opened = Store(store, create=False)
    return Run(opened, opened.find_runs(name)[0])


def _sources(runs: AnyRuns, store: str | None = None) -> list[Source]:
    """Return runs as sources; one name may be that of a series or a tag."""
    from fairtrial.analyse.score_table import find_sources, sources_of

    given = [runs] if isinstance(runs, Run | str) else list(runs)
    if not given:
        raise FairtrialError("no run is given")
    named = (
        find_sources([one for one in given if isinstance(one, str)], Store(store, create=False))
        if any(isinstance(one, str) for one in given)
        else []
    )
    return [*sources_of(one for one in given if isinstance(one, Run)), *named]


def _scores(runs: AnyRuns, store: str | None) -> ScoreTable:
    from fairtrial.analyse.score_table import read_scores

    return read_scores(_sources(runs, store))


def _functions(suite: Suite | None, run: Run | None = None) -> Functions | None:
    """Return the functions of a suite; without one, of the suite that a run was made of in this process."""
    known = suite or getattr(run, "made_of", None)
    return known.functions if known is not None else None


def _spec(scorer: AnyScorer | None) -> tuple[ScorerSpec | None, dict[str, Any]]:
    if scorer is None:
        return None, {}
    from fairtrial.config.python import given_scorer

    spec, functions = given_scorer(scorer)
    return ({"type": spec} if isinstance(spec, str) else spec), functions


def _judge(judge: AnyJudge | None) -> tuple[str | None, Functions]:
    """Return the name of a judge, and the function behind it."""
    if judge is None:
        return None, {}
    from fairtrial.config.python import given_judge

    return given_judge(judge)


# -- runs ----------------------------------------------------------------------------------------


@overload
async def arun(
    suite: AnySuite,
    *,
    options: RunOptions | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run: ...
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
async def arun(
    suite: AnySuite,
    *,
    runs: int | None = None,
    options: RunOptions | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run | RunSeries:
    """Run a suite and store the result: the async twin of `run`."""
    where = where_of(engine, workers)
    loaded = _loaded(suite, options)
    opened = Store(store)
    if runs is None:
        run = await pipeline.arun(loaded, store=opened, watch=follower(show=progress), where=where)
        run.made_of = loaded
        return run
    from fairtrial.analyse.series import RunSeries

    finished = await arun_series(
        loaded, runs, store=opened, watch=lambda part: follower(part, show=progress), where=where
    )
    for run in finished:
        run.made_of = loaded
    return RunSeries(finished)


@overload
def run(
    suite: AnySuite,
    *,
    options: RunOptions | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run: ...
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
def run(
    suite: AnySuite,
    *,
    runs: int | None = None,
    options: RunOptions | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run | RunSeries:
    """Run a suite and store the result. Everything is durable before it is counted; `resume` continues what stopped.

    Args:
        suite: A suite, a mapping with the keys of a suite file, or the path of one.
        runs: Run it so many times in sequence, as a series; the result is a list of runs.
        options: Which part of a file or mapping to run, such as `RunOptions(limit=5)`.
        store: Where it is stored: `sqlite:///file.db` or a file name; default: `.fairtrial/fairtrial.db`.
        progress: Whether to show a line of progress; default: in notebooks and terminals.
        engine: Where trials are carried out: `local`, `ray`, or `ray:ADDRESS` for the cluster at that address.
        workers: Processes that carry them out: of this machine, or at most so many on a cluster.
    """
    if runs is None:
        return wait_for(arun(suite, options=options, store=store, progress=progress, engine=engine, workers=workers))
    return wait_for(
        arun(suite, runs=runs, options=options, store=store, progress=progress, engine=engine, workers=workers)
    )


def open_run(name: str = "latest", *, store: str | None = None) -> Run:
    """Open a stored run by its id, an unambiguous prefix of it, a tag, or `latest`."""
    return Run.find(name, Store(store, create=False))


@overload
async def aresume(
    run: Run,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run: ...
@overload
async def aresume(
    run: RunSeries,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> RunSeries: ...
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
async def aresume(
    run: AnyRun | RunSeries,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run | RunSeries:
    """Continue a run or a series that was stopped: the async twin of `resume`."""
    from fairtrial.analyse.series import RunSeries

    first = _first_of(run, store) if isinstance(run, str) else run[0] if isinstance(run, RunSeries) else run
    made_of = suite or first.made_of
    functions, where = _functions(made_of), where_of(engine, workers)
    if isinstance(run, Run) or first.record.series_id is None:
        done = await resuming.aresume(
            first.id, store=first.store, functions=functions, watch=follower(show=progress), where=where
        )
        done.made_of = made_of
        return done
    runs = await resuming.aresume_series(
        first.id,
        store=first.store,
        functions=functions,
        watch=lambda part: follower(part, show=progress),
        where=where,
    )
    for one in runs:
        one.made_of = made_of
    return RunSeries(runs)


@overload
def resume(
    run: Run,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run: ...
@overload
def resume(
    run: RunSeries,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> RunSeries: ...
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
def resume(
    run: AnyRun | RunSeries,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Run | RunSeries:
    """Continue a run or a series that was stopped; no finished call is repeated.

    A series goes on with the runs that were not made yet. A name that is part of a series stands for the whole series,
    as on the command line; `resume(open_run(name))` continues that run alone.

    Args:
        run: A run, a series, or the name of either.
        suite: Gives functions that cannot be imported again; needed in a new session.
        store: Where it is stored.
        progress: Whether to show a line of progress; default: in notebooks and terminals.
        engine: Where trials are carried out, as for `run`, whatever carried them out before.
        workers: As for `run`.
    """
    return wait_for(aresume(run, suite=suite, store=store, progress=progress, engine=engine, workers=workers))


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
    opened = _opened(run, store)
    done = await resuming.aresume(
        opened.id,
        store=opened.store,
        mode="retry",
        functions=_functions(suite, opened),
        watch=follower(show=progress),
        where=where_of(engine, workers),
    )
    done.made_of = suite or opened.made_of
    return done


retry = _waiting(aretry, "retry")


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
    opened = _opened(run, store)
    spec, own = _spec(scorer)
    name, judging = _judge(judge)
    functions = {**(_functions(suite, opened) or {}), **own, **judging}
    done = await resuming.arescore(
        opened.id,
        scorer=spec,
        judge=name,
        functions=functions,
        store=opened.store,
        watch=follower(show=progress),
        where=where_of(engine, workers),
    )
    done.made_of = suite or opened.made_of
    return done


rescore = _waiting(arescore, "rescore")


async def ascore(
    scorer: AnyScorer, /, *, response: str, expected: Any = None, input: str = "", **options: Any
) -> Score | Unscored:
    """Score one answer: `score("numeric", response="about 42", expected=42, tolerance=0.01)`.

    `expected` is text, a number, a mapping (compared as JSON), or a list of those, any of which is right. A scorer that
    compares embeddings (`similar`) asks its `embedder` for them.
    """
    case = Case(id="case", input=input, expected=read_expected(expected))
    spec, functions = _spec(scorer)
    built = build_scorer({**(spec or {}), **options})
    problems = list(case_problems(built, case, Path()))
    if problems:
        raise FairtrialError("; ".join(problems))
    context = ScoreContext(response=response, case=case, folder=Path(), functions=functions)
    async with embedding(built.embedders()) as embed:
        return await score_answer(built, msgspec.structs.replace(context, embed=embed))


score = _waiting(ascore, "score")


# -- judges and people ---------------------------------------------------------------------------


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
        runs: Ask so many times, to measure how much its marks vary.
        store: Where the result is stored.
    """
    name, functions = _judge(judge)
    spec = _spec(scorer)[0]
    if suite is not None:
        loaded = _loaded(suite, None)
        judges = calibrating.judges_of(loaded, name, functions)
        if len(judges) > 1:
            names = ", ".join(f"`{one.name}`" for one in judges)
            raise FairtrialError(f"this suite has several judges ({names}): name the one to calibrate")
        chosen, common = judges[0], calibrating.settings_of(loaded)
        spec = spec or next(iter(calibrating.marking_scorers(loaded)), None)
        functions = {**loaded.functions, **functions}
    elif name is None:
        raise FairtrialError("give a judge, or a suite that has one")
    else:
        variables = variables_of()
        chosen, common = judge_named(name, variables, Path(), functions=functions), {"variables": variables}
    return await calibrating.acalibrate(
        chosen,
        scorer=spec,
        samples=Path(samples) if samples else None,
        runs=runs,
        store=Store(store),
        **{**common, "functions": functions},
    )


calibrate = _waiting(acalibrate, "calibrate")


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
    opened = _opened(run, store)
    name, functions = _judge(judge)
    return await pairing.apair(
        opened.id,
        judge=name,
        arms=arms,
        instructions=instructions,
        overrides={"budget_usd": budget_usd},
        functions={**(_functions(suite, opened) or {}), **functions},
        store=opened.store,
    )


pairwise = _waiting(apairwise, "pairwise")


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """What came of people's labels: how many answers are to be labelled or were, and the corrected means by arm."""

    run_id: str
    answers: int  # written to `file`, or labelled
    file: Path | None = None
    arms: dict[str, ArmLabels | None] = {}


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

    `label(run, sample=30, to="marks.csv")` draws answers at random, blind; `label(run, "marks.csv")` reads what people
    wrote there (0 to 100, or pass and fail); `label(run, {trial_id: 0.8})` takes labels from 0 to 1. With neither,
    returns the result of the labels so far.
    """
    from fairtrial.workflows.label import Label, add_labels, read_labels, write_sample

    opened = _opened(run, store)
    if (sample is None) != (to is None):
        raise FairtrialError("`sample` and `to` go together: the number of answers, and the file to write")
    if sample is not None and to is not None:
        if labels is not None:
            raise FairtrialError("draw a sample or give labels, one after the other")
        count = write_sample(opened, Path(to), count=sample, arms=arms, seed=seed)
        return Labels(run_id=opened.id, answers=count, file=Path(to))
    count = 0
    if isinstance(labels, Mapping):
        for trial, value in labels.items():
            if not 0 <= value <= 1:
                raise FairtrialError(f"a label in Python is a number from 0 to 1, not {value} for `{trial}`")
        count = add_labels(opened, [Label(trial, float(value)) for trial, value in labels.items()], by=by)
    elif labels is not None:
        count = add_labels(opened, read_labels(Path(labels)), by=by)
    return Labels(run_id=opened.id, answers=count, arms={arm.arm: arm.labels for arm in opened.arms})


# -- numbers -------------------------------------------------------------------------------------


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
    from fairtrial.analyse.rank import rank as rank_arms

    return rank_arms(_scores(runs, store), metric=metric, by=by, control_style=control_style)


def power(
    runs: AnyRuns = "latest",
    *,
    delta: float | Sequence[float] | None = None,
    margin: float | Sequence[float] = (),
    arms: tuple[str, str] | None = None,
    power: float = 0.8,
    store: str | None = None,
) -> Power:
    """Estimate how many cases or repeats are needed to detect a difference; `delta` and `margin` are in points of 100.

    The numbers allow for the uncertainty of the spread measured in the runs: the fewer cases, the more are needed.
    """
    from fairtrial.analyse.planning import DELTAS, plan_power
    from fairtrial.analyse.score_table import choose

    scores = _scores(runs, store)
    deltas = DELTAS if delta is None else [_points("delta", one, _FEWEST_POINTS) for one in _listed(delta)]
    margins = [_points("margin", one, _FEWEST_POINTS) for one in _listed(margin)]
    return plan_power(scores, choose(scores, arms or ()), deltas=deltas, margins=margins, beta=1 - power)


def _listed(value: float | Sequence[float]) -> list[float]:
    return list(value) if isinstance(value, Sequence) else [value]


def _points(name: str, value: float, least: float) -> float:
    """Return points as a share of 1; refuse what looks like a share already."""
    if 0 < value < least or (name == "min_score" and value == least):
        raise FairtrialError(
            f"`{name}` is in points from 0 to 100, as on the command line: did you mean {100 * value:g}?"
        )
    return value / 100


def variance(run: AnyRun = "latest", *, case_cost: float = 1.0, store: str | None = None) -> Variance:
    """Say where the uncertainty of a run's means comes from, and where the next dollar helps most."""
    from fairtrial.analyse.planning import Variance, arm_variances

    opened = _opened(run, store)
    return Variance(run_id=opened.id, arms=arm_variances(opened, case_cost=case_cost))


def gate(
    run: AnyRuns = "latest",
    *,
    min_score: float | None = None,
    against: AnyRuns | None = None,
    margin: float | None = None,
    min_coverage: float = 95.0,
    arms: Sequence[str] = (),
    metric: str = "",
    these_cases: bool = False,
    store: str | None = None,
) -> Gate:
    """Pass or fail a run; the result is true only if it passed: `assert ft.gate(run, min_score=80)`.

    `min_score`, `margin` and `min_coverage` are in points of 100, as on the command line; a metric is on its own scale.
    A minimum is met when the whole 95 % interval is above it; a regression against another run is ruled out when the
    whole interval of the difference lies above −margin. `result` is `passed`, `failed` or `cannot tell`.
    """
    from fairtrial.analyse.gate import Terms
    from fairtrial.analyse.gate import gate as check

    terms = Terms(
        min_score=min_score if min_score is None or metric else _points("min_score", min_score, 1.0),
        margin=margin if margin is None or metric else _points("margin", margin, _FEWEST_POINTS),
        min_coverage=min_coverage / 100,
        metric=metric,
        arms=tuple(arms),
        these_cases=these_cases,
    )
    reference = None if against is None else _one_source(against, store)
    return check(_one_source(run, store), reference, terms)


def _one_source(runs: AnyRuns, store: str | None) -> Source:
    sources = _sources(runs, store)
    if len(sources) > 1:
        raise FairtrialError("a gate checks one run or one series at a time")
    return sources[0]


@overload
def cases(runs: AnyRuns = "latest", *, subset: None = None, store: str | None = None) -> CaseAnalysis: ...
@overload
def cases(runs: AnyRuns = "latest", *, subset: int, store: str | None = None) -> list[str]: ...
def cases(runs: AnyRuns = "latest", *, subset: int | None = None, store: str | None = None) -> CaseAnalysis | list[str]:
    """Analyse the cases themselves: which are hard, tell nothing apart, or probably have a wrong expected answer.

    With `subset`, returns the ids of so many cases that represent all of them.
    """
    from fairtrial.analyse.items import analyse_cases, choose_cases

    scores = _scores(runs, store)
    return analyse_cases(scores) if subset is None else choose_cases(scores, subset)


# -- files ---------------------------------------------------------------------------------------


def export(run: AnyRun, file: str | Path, *, format: str | None = None, store: str | None = None) -> Path:
    """Write a run to a file by its ending: json, jsonl, csv, parquet, junit.xml, md, html; `format` says another."""
    from fairtrial.reports.export import export as write
    from fairtrial.reports.formats import format_named

    return Path(write(_opened(run, store), str(file), format_named(format) if format else None))


def report(
    run: AnyRuns = "latest",
    file: str | Path = "report.html",
    *,
    site: str | Path | None = None,
    base_url: str = "",
    store: str | None = None,
) -> Path:
    """Write a run as one self-contained HTML page that opens from disk, without a network.

    `site` names a folder instead: static pages of one or more runs, for any web space. `base_url` says where they will
    be, so that links to them have a picture.
    """
    if site is not None:
        from fairtrial.reports.site import check_address, write_site

        check_address(base_url)
        return write_site(
            [one for source in _sources(run, store) for one in source.runs], site, base_url=base_url
        ).folder
    if base_url:
        raise FairtrialError("`base_url` goes with `site`, which names the folder of a site")
    if not isinstance(run, Run | str):
        raise FairtrialError("a report is about one run: `site` writes several")
    if not str(file).lower().endswith(".html"):
        raise FairtrialError(f"{file}: a report must be an .html file; `ft.export` writes other formats")
    return export(run, file, store=store)


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
    from fairtrial.results import Columns
    from fairtrial.workflows.import_results import aimport_results as import_all

    columns = Columns(
        case=case,
        arm=arm,
        score=score,
        repeat=repeat,
        category=category,
        difficulty=difficulty,
        cluster=cluster,
        cost=cost,
        latency=latency,
        input=input,
        expected=expected,
        answer=answer,
    )
    scales = scale if isinstance(scale, dict) else {} if scale is None else {"": scale}
    done = await import_all(data, store=Store(store), format=format, columns=columns, scales=scales)
    runs = [one.run for one in done]
    return runs[0] if len(runs) == 1 else runs


import_results = _waiting(aimport_results, "import_results")


def aggregate(run: Run) -> dict[str, Aggregate]:
    """Return each arm's mean, standard deviation, minimum, maximum, count, weight and interval; scores are 0–1."""
    return {arm.arm: arm.aggregate for arm in run.arms}


def multi_run(runs: Sequence[Run]) -> dict[str, MultiRun]:
    """Return each arm's run ids, scores, mean, standard deviation, minimum, maximum and interval over several runs."""
    from fairtrial.analyse.series import over_runs

    return over_runs(runs)


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
    from fairtrial.workflows.traces import TraceOptions
    from fairtrial.workflows.traces import import_traces as write_cases

    options = TraceOptions(
        where={**(where or {})},
        by=by,
        sample=sample,
        seed=seed,
        expected=expected,
        redact=tuple(redact),
        form=form,
        target=target,
    )
    try:
        msgspec.convert(msgspec.to_builtins(options), TraceOptions)
    except msgspec.ValidationError as error:
        raise FairtrialError(f"import_traces: {error}") from None
    paths = [files] if isinstance(files, str | Path) else list(files)
    return write_cases(paths, output, options)


def compare_models(runs: Sequence[Run], a: str, b: str) -> RunMeansTest | None:
    """Compare two arms by their run means (pooled Student t); None with fewer than two runs of either.

    The result holds for these exact cases. It does not say which arm is better on similar cases.
    """
    from fairtrial.analyse.series import compare_run_means

    return compare_run_means(runs, a, b)


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
) -> Comparison: ...
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
def compare(
    runs: AnyRuns,
    a: str | None = None,
    b: str | None = None,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
    store: str | None = None,
) -> Comparison | Comparisons:
    """Compare arms on the cases they share; the verdict may be that nobody can tell. Scores and margin are 0–1.

    With two names, compares that pair over all runs that have both; without names, every pair. The runs of a series
    count as one. The metric defaults to the suite's primary metric, else the score (""). `largest` is the largest
    possible difference on a case, if that is less than the scale allows.
    """
    from fairtrial.analyse.compare import compare as compare_scores
    from fairtrial.analyse.score_table import choose, pooled, read_scores

    if (a is None) != (b is None):
        raise FairtrialError("give two arms, or none")
    names = () if a is None or b is None else (a, b)
    scores = read_scores(pooled(_sources(runs, store), names))
    comparisons = compare_scores(scores, choose(scores, names), metric=metric, margin=margin, largest=largest)
    return comparisons.pairs[0] if names else comparisons


aopen_run = _twin(open_run, "aopen_run")
alabel = _twin(label, "alabel")
arank = _twin(rank, "arank")
apower = _twin(power, "apower")
avariance = _twin(variance, "avariance")
agate = _twin(gate, "agate")
aexport = _twin(export, "aexport")
areport = _twin(report, "areport")
aaggregate = _twin(aggregate, "aaggregate")
amulti_run = _twin(multi_run, "amulti_run")
acompare_models = _twin(compare_models, "acompare_models")
aimport_traces = _twin(import_traces, "aimport_traces")


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
) -> Comparison: ...
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
async def acompare(runs: AnyRuns, a: str | None = None, b: str | None = None, **options: Any) -> Any:
    """Compare arms on the cases they share: the async twin of `compare`."""
    return await asyncio.to_thread(functools.partial(compare, runs, a, b, **options))


@overload
async def acases(runs: AnyRuns = "latest", *, subset: None = None, store: str | None = None) -> CaseAnalysis: ...
@overload
async def acases(runs: AnyRuns = "latest", *, subset: int, store: str | None = None) -> list[str]: ...
async def acases(
    runs: AnyRuns = "latest", *, subset: int | None = None, store: str | None = None
) -> CaseAnalysis | list[str]:
    """Analyse the cases themselves: the async twin of `cases`."""
    if subset is None:
        return await asyncio.to_thread(functools.partial(cases, runs, store=store))
    return await asyncio.to_thread(functools.partial(cases, runs, subset=subset, store=store))
