"""Run suites, and go on with, repeat or rescore their runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar, overload

import msgspec

from fairtrial import pipeline
from fairtrial.analyse.run import Run, RunSeries
from fairtrial.api.given import (
    AnyJudge,
    AnyRun,
    AnyScorer,
    AnySuite,
    first_run,
    functions_of,
    judge_given,
    load_given,
    open_given,
    scorer_given,
)
from fairtrial.api.twins import sync_twin
from fairtrial.config import RunOptions, Suite
from fairtrial.core.accepted import case_problems, score_answer
from fairtrial.core.errors import FairtrialError
from fairtrial.core.expected import read_expected
from fairtrial.core.experiment import Case
from fairtrial.core.options import build_scorer
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.engine.engines import where_of
from fairtrial.store import Store
from fairtrial.workflows import resume as resuming
from fairtrial.workflows.embedding import embedding
from fairtrial.workflows.following import follower
from fairtrial.workflows.series import arun_series

Continued = TypeVar("Continued", bound=Run | RunSeries)


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
    where = where_of(engine, workers)
    loaded = load_given(suite, options)
    opened = Store(store)
    if runs is None:
        run = await pipeline.arun(loaded, store=opened, watch=follower(show=progress), where=where)
        run.made_of = loaded
        return run

    finished = await arun_series(
        loaded, runs, store=opened, watch=lambda part: follower(part, show=progress), where=where
    )
    for run in finished:
        run.made_of = loaded
    return RunSeries(finished)


run = sync_twin(arun)


@overload
async def aresume(
    run: Continued,
    *,
    suite: Suite | None = None,
    store: str | None = None,
    progress: bool | None = None,
    engine: str = "local",
    workers: int | None = None,
) -> Continued: ...


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
    first = first_run(run, store) if isinstance(run, str) else run[0] if isinstance(run, RunSeries) else run
    made_of = suite or first.made_of
    functions, where = functions_of(made_of), where_of(engine, workers)
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


resume = sync_twin(aresume)


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
    opened = open_given(run, store)
    done = await resuming.aresume(
        opened.id,
        store=opened.store,
        mode="retry",
        functions=functions_of(suite, opened),
        watch=follower(show=progress),
        where=where_of(engine, workers),
    )
    done.made_of = suite or opened.made_of
    return done


retry = sync_twin(aretry)


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
    opened = open_given(run, store)
    spec, own = scorer_given(scorer)
    name, judging = judge_given(judge)
    functions = {**(functions_of(suite, opened) or {}), **own, **judging}
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


rescore = sync_twin(arescore)


async def ascore(
    scorer: AnyScorer, /, *, response: str, expected: Any = None, input: str = "", **options: Any
) -> Score | Unscored:
    """Score one answer: `score("numeric", response="about 42", expected=42, tolerance=0.01)`.

    `expected` is text, a number, a mapping (compared as JSON), or a list of those, any of which is right. A scorer that
    compares embeddings (`similar`) asks its `embedder` for them.
    """
    case = Case(id="case", input=input, expected=read_expected(expected))
    spec, functions = scorer_given(scorer)
    built = build_scorer({**(spec or {}), **options})
    problems = list(case_problems(built, case, Path()))
    if problems:
        raise FairtrialError("; ".join(problems))
    context = ScoreContext(response=response, case=case, folder=Path(), functions=functions)
    async with embedding(built.embedders()) as embed:
        return await score_answer(built, msgspec.structs.replace(context, embed=embed))


score = sync_twin(ascore)
