"""Continuing stored runs: resume, retry, rescore. The same session as for a new run, with less left to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from fairtrial.agents.mcp.preflight import preflight, with_tools
from fairtrial.analyse.run import Run
from fairtrial.config.money import check_prices
from fairtrial.core.accepted import case_problems
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import ScorerSpec
from fairtrial.core.functions import Functions
from fairtrial.core.ids import canonical_json, new_id
from fairtrial.core.options import build_scorer, scorer_problems
from fairtrial.core.scorer import Scorer
from fairtrial.engine.job import HERE, Job, Where
from fairtrial.engine.scoring import Scoring
from fairtrial.engine.targets import targets_of
from fairtrial.engine.watching import Watch
from fairtrial.pipeline import SeriesPlan, feed_of, settled_status, start_run, work_on
from fairtrial.store import Store
from fairtrial.store.arriving import check_arrived
from fairtrial.store.lease import RunLease
from fairtrial.store.records import RunRecord
from fairtrial.store.scorings import add_scoring, finish_scoring, scoring_choice, scorings_of
from fairtrial.store.todo import Mode
from fairtrial.workflows.stored import (
    check_functions,
    check_keys,
    scorers_of_job,
    stored_job,
    with_embedders,
    with_judge,
)

_MAX_PROBLEMS = 20
_ENDED = ("completed", "stopped")
Part = tuple[int, int]  # number of a run in its series, and the length of the series


async def aresume(
    name: str,
    *,
    store: Store | None = None,
    mode: Mode = "resume",
    overrides: dict[str, Any] | None = None,
    functions: Functions | None = None,
    watch: Watch | None = None,
    where: Where = HERE,
) -> Run:
    """Continue a run (`resume`), or repeat its failed trials (`retry`). No finished call is repeated."""
    store = store or Store(create=False)
    record = store.find_run(name)
    refuse_imported(record, mode)
    if record.status == "completed":
        return Run(store, record)
    job = stored_job(store, record.id, mode, overrides or {}, functions, where)
    goes_on = job.stopped is not None and mode == "resume"
    if goes_on:
        job = _without_early_stop(job)
    choice = scoring_choice(store, record.id, record.scoring)
    job = with_judge(store, job, choice.get("judge"))
    check_functions(store, job, choice.get("scorer"))
    scorers = _scorers(store, job, choice.get("scorer"))
    job = with_embedders(store, job, scorers)
    job = msgspec.structs.replace(job, judged=any(scorer.needs_judge() for scorer in scorers))
    check_prices(job.arms, job.settings)
    inventory = await preflight(job.arms, job.variables.hide)
    job = msgspec.structs.replace(job, arms=with_tools(job.arms, inventory))
    async with targets_of(job) as targets:
        scoring = _scoring(job, choice.get("scorer"), record.scoring)
        with store.lease(record.id) as lease:
            if goes_on:
                _record_without_early_stop(store, lease)
            async with feed_of(store, job) as feed:
                return await work_on(store, lease, job, targets, scoring, feed, watch)


def refuse_imported(record: RunRecord, mode: Mode) -> None:
    """Raise for a run of another tool, as only that tool can ask its targets, and for one that is not whole yet."""
    check_arrived(record)
    if record.origin is not None:
        raise FairtrialError(
            f"run {record.id} was imported from {record.origin['tool']} and cannot be continued here: {mode} it there, "
            "then import the new log"
        )


async def aresume_series(
    name: str,
    *,
    store: Store,
    overrides: dict[str, Any] | None = None,
    functions: Functions | None = None,
    watch: Callable[[Part], Watch | None],
    where: Where = HERE,
) -> list[Run]:
    """Continue a series, given by its id or one of its runs: finish the runs that were started, then do the rest."""
    started = store.series_of(name)
    runs = max(len(started), series_size(started))
    done: list[Run] = []
    for number in range(1, runs + 1):
        run_watch = watch((number, runs))
        if number > len(started):
            run = await next_run(store, started[0], runs, overrides or {}, functions, run_watch, where)
        elif started[number - 1].status in _ENDED:
            run = Run(store, started[number - 1])
        else:
            name = started[number - 1].id
            run = await aresume(
                name, store=store, overrides=overrides, functions=functions, watch=run_watch, where=where
            )
        done.append(run)
        if run.status == "interrupted":
            break
    return done


def series_size(runs: Sequence[RunRecord]) -> int:
    """Return the planned number of runs in a series, as recorded in its runs; 0 if it was not recorded."""
    return max((msgspec.json.decode(run.context).get("series_runs", 0) for run in runs), default=0)


def _scoring(job: Job, scorer: ScorerSpec | None, number: int) -> Scoring:
    return Scoring(job.folder, scorer, number, on_refusal=job.settings.on_refusal, functions=job.functions)


async def next_run(
    store: Store,
    first: RunRecord,
    runs: int,
    overrides: dict[str, Any],
    functions: Functions | None,
    watch: Watch | None,
    where: Where,
    more: Mapping[str, Any] | None = None,
) -> Run:
    """Start the next run of a series; `more` is recorded with it."""
    job = stored_job(store, first.id, "resume", overrides, functions, where)
    check_functions(store, job)
    job = msgspec.structs.replace(job, run_id=new_id(), fresh=True, stopped=None)
    check_prices(job.arms, job.settings)
    assert first.series_id is not None
    series = SeriesPlan(first.series_id, runs)
    context = msgspec.json.decode(first.context)
    facts = {name: context[name] for name in ("dataset", "code", "selected") if name in context} | dict(more or {})
    return await start_run(store, job, _scorers(store, job), first.settings, series, watch, facts=facts)


def _scorers(store: Store, job: Job, scorer: ScorerSpec | None = None) -> list[Scorer]:
    return [build_scorer(spec) for spec in scorers_of_job(store, job, scorer)]


def _without_early_stop(job: Job) -> Job:
    """Turn off early stopping for a stopped run that the user resumes to get the remaining cases."""
    stop = job.settings.stop
    assert stop is not None
    settings = msgspec.structs.replace(job.settings, stop=msgspec.structs.replace(stop, over=True))
    return msgspec.structs.replace(job, settings=settings)


def _record_without_early_stop(store: Store, lease: RunLease) -> None:
    stored = msgspec.json.decode(store.run_of_id(lease.run_id).settings)
    stored["stop"]["over"] = True
    lease.set_run(settings=canonical_json(stored))


async def arescore(
    name: str,
    *,
    scorer: ScorerSpec | None = None,
    judge: str | None = None,
    overrides: dict[str, Any] | None = None,
    functions: Functions | None = None,
    store: Store | None = None,
    watch: Watch | None = None,
    where: Where = HERE,
) -> Run:
    """Score the stored answers again, with another scorer or judge; no new answers are requested.

    The earlier scores stay in the store.
    """
    problems = scorer_problems(scorer) if scorer else []
    if problems:
        raise FairtrialError("; ".join(message for _, message in problems))
    store = store or Store(create=False)
    record = store.find_run(name)
    check_arrived(record)
    _check_imported(record, scorer)
    job = stored_job(store, record.id, "rescore", overrides or {}, functions, where)
    job = with_judge(store, job, judge)
    check_functions(store, job, scorer)
    judged = _check_rescoring(store, job, scorer)
    job = with_embedders(store, job, _scorers(store, job, scorer))
    needed_judges = job.settings.judges if judged else ()
    check_keys(needed_judges)
    job = msgspec.structs.replace(job, settings=msgspec.structs.replace(job.settings, judges=needed_judges))
    check_prices((), job.settings)
    async with targets_of(job) as targets:
        with store.lease(record.id) as lease:
            async with feed_of(store, job) as feed:
                choice = {"scorer": scorer, "judge": judge} if scorer or judge else None
                number = add_scoring(lease, canonical_json(choice) if choice else None)
                scoring = _scoring(job, scorer, number)
                return await work_on(store, lease, job, targets, scoring, feed, watch)


def _check_imported(record: RunRecord, scorer: ScorerSpec | None) -> None:
    """Raise if a run of another tool has no answers to score, or no scorer that could be used again."""
    origin = record.origin
    if origin is None:
        return
    if "the answers" in origin["missing"]:
        raise FairtrialError(f"{origin['tool']} did not record the answers of run {record.id}: nothing can be scored")
    if scorer is None:
        raise FairtrialError(
            f"run {record.id} was scored by {origin['tool']}: choose a scorer of fairtrial with --scorer NAME"
        )


def use_scoring(name: str, number: int, *, store: Store | None = None) -> Run:
    """Make an earlier scoring the run's current one again; nothing is scored and no model is called."""
    store = store or Store(create=False)
    record = store.find_run(name)
    check_arrived(record)
    finished = [scoring.number for scoring in scorings_of(store, record.id) if scoring.completed]
    if number not in finished:
        numbers = ", ".join(map(str, finished))
        raise FairtrialError(f"run {record.id} has no finished scoring {number}; finished scorings: {numbers}")
    with store.lease(record.id) as lease:
        finish_scoring(lease, number, settled_status(store, record, number))
    return Run(store, store.find_run(record.id))


def _check_rescoring(store: Store, job: Job, scorer: ScorerSpec | None) -> bool:
    """Raise if the scorer does not fit the cases: it must not replace valid scores.

    Returns whether a judge is needed.
    """
    problems: list[str] = []
    judged = False
    for first in range(0, store.plan(job.plan_id).case_count, 1000):
        for case in store.cases(job.plan_id, first, 1000, job.variables):
            specs = [arm.scorer_of(case, scorer) for arm in job.arms]
            scorers = [build_scorer(spec) for spec in specs]
            reasons = {reason for built in scorers for reason in case_problems(built, case, job.folder)}
            needs_judge = any(built.needs_judge() for built in scorers)
            judged = judged or needs_judge
            if needs_judge and not job.settings.judges:
                reasons.add("its scorer needs a judge: give one with --judge")
            problems += [f"{case.id}: {reason}" for reason in sorted(reasons)]
        if len(problems) >= _MAX_PROBLEMS:
            break
    if problems:
        raise FairtrialError(job.variables.hide("\n".join(problems[:_MAX_PROBLEMS])))
    return judged
