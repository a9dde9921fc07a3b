"""READ FIRST: the complete data flow.

    suite ──► plan ──► run ──► score ──► store ──► analyse ──► report
    cases     trials   answers  scores    rows      numbers     what people read

`load` reads and checks a suite (`config`). `arun` writes its plan to the store and starts a run of it. `work_on` is
one session of work on a run: the engine (`engine`) asks the targets, stores each answer, scores it and stores the
score; at the end the run gets its status. All analysis reads from the store (`analyse`).

Command line, web page and library all use this module. `workflows/` has the other entry points: `resume` continues
stored runs, `calibrate` tests judges.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairtrial.agents.doubles.trials import put_recordings_together
from fairtrial.agents.mcp.preflight import preflight, with_tools
from fairtrial.analyse.run import Run
from fairtrial.config import RunOptions, Suite, load_suite, parse_suite
from fairtrial.config.source import SuiteSource
from fairtrial.core.errors import (
    FairtrialError,
    InterruptedWorkError,
    Problem,
    ProblemsError,
    StoreAwayError,
    StoreBusyError,
    TargetUnusableError,
    WorkersGoneError,
)
from fairtrial.core.experiment import Arm
from fairtrial.core.ids import canonical_json, new_id
from fairtrial.core.scorer import Scorer
from fairtrial.core.settings import LookAgain
from fairtrial.core.target import Target
from fairtrial.core.variables import Variables
from fairtrial.engine.feed import CaseFeed
from fairtrial.engine.job import HERE, Halt, Job, Where
from fairtrial.engine.meanwhile import begin_to_import
from fairtrial.engine.progress import Progress
from fairtrial.engine.provenance import run_context, with_what_was_learned
from fairtrial.engine.scoring import Scoring
from fairtrial.engine.session import Engine
from fairtrial.engine.targets import targets_of
from fairtrial.engine.watching import Watch
from fairtrial.foreign.suites import Imported, read_foreign, suite_text
from fairtrial.store import Store, ledger, totals
from fairtrial.store.extended import extended
from fairtrial.store.files import kept_journals, kept_workspaces
from fairtrial.store.lease import RunLease
from fairtrial.store.planned import Planned, planned_cases
from fairtrial.store.plans import write_plan
from fairtrial.store.records import RANDOM, PlanRecord, RunRecord
from fairtrial.store.scorings import finish_scoring
from fairtrial.store.waiting import Waiting

_STATUS_PATIENCE = 30.0  # seconds that the status waits for a store out of reach: until then, the rows were waited for

# -- load ----------------------------------------------------------------------------------------


def load(
    path: str | Path, options: RunOptions | None = None, *, placeholders: bool = False, whole: bool = True
) -> Suite:
    """Load a suite and check everything that can be checked before any money is spent.

    With `placeholders`, variables may be unset, but then the suite cannot be run. Unless `whole`, a run
    of a large dataset can start when its first cases are checked. Also accepts configurations of other tools that can
    be run directly, such as k-eval's.
    """
    path = Path(path)
    foreign = read_foreign(path)
    if foreign is None:
        suite = load_suite(path, options, placeholders=placeholders, whole=whole)
        suite.path = path
        return suite
    text = suite_text(foreign.imported, path.parent)
    try:
        suite = parse_suite(text, file=str(path), folder=path.parent, options=options, placeholders=placeholders)
    except ProblemsError as error:
        raise ProblemsError(_in_the_original(error.problems, foreign.imported, path)) from None
    suite.path = path
    suite.notes = [f"not carried over from {foreign.tool}: {finding}" for finding in foreign.imported.findings]
    suite.notes += [f"unlike {foreign.tool}: {difference}" for difference in foreign.imported.differences]
    return suite


def _in_the_original(problems: Sequence[Problem], imported: Imported, path: Path) -> list[Problem]:
    """Return the problems of a converted suite where they are in the file that the user has."""
    lines = SuiteSource(path.read_text("utf-8"), str(path), Variables({}, placeholders=True))

    def moved(problem: Problem) -> Problem:
        if problem.file != str(path):  # such as the dataset
            return problem
        key = imported.key_of(problem.key)
        return msgspec.structs.replace(problem, key=key, line=lines.line(tuple(key.split("."))))

    return [moved(problem) for problem in problems]


def load_text(text: str, *, file: str, folder: Path, options: RunOptions | None = None) -> Suite:
    """Load a suite from text; paths in it are relative to the folder."""
    return parse_suite(text, file=file, folder=folder, options=options)


# -- plan ----------------------------------------------------------------------------------------


class SeriesPlan(NamedTuple):
    """Several runs of one plan: their shared id, and their planned number."""

    id: str
    runs: int


async def arun(
    suite: Suite,
    *,
    store: Store | None = None,
    series: SeriesPlan | None = None,
    watch: Watch | None = None,
    where: Where = HERE,
) -> Run:
    """Run a suite and store the result; everything is durably stored before it is counted."""
    store = store or Store()
    job = Job(
        run_id=new_id(),
        plan_id=suite.plan_id,
        series_id=series.id if series else None,
        arms=suite.arms,
        settings=suite.settings,
        variables=suite.variables,
        folder=suite.folder,
        functions=suite.functions,
        mode="resume",
        fresh=True,
        where=where,
    )
    job = msgspec.structs.replace(job, settings=msgspec.structs.replace(job.settings, again=_again(store, suite)))
    settings = canonical_json(suite.variables.template_all(msgspec.to_builtins(job.settings)))
    write_plan = partial(_write_plan, suite, store)
    facts = {"dataset": suite.dataset_origin, "code": suite.code, "selected": suite.options.selected()}
    facts = {name: fact for name, fact in facts.items() if fact or name == "selected"}
    return await start_run(store, job, suite.build_scorers(), settings, series, watch, write_plan, facts)


def _stored_arms(suite: Suite) -> bytes:
    return canonical_json(suite.variables.template_all(msgspec.to_builtins(suite.arms)))


def _again(store: Store, suite: Suite) -> LookAgain | None:
    """Return which run that was looked at before is extended; not known where cases are read while the run goes on."""
    if suite.check_later is not None or len(suite.arms) < 2:
        return None
    cases = ((case.id, case.input) for case in suite.cases())
    return extended(store, suite.name, _stored_arms(suite), suite.case_count, cases)


def _write_plan(suite: Suite, store: Store, waiting: Waiting) -> Generator[Planned, None, None]:
    plan = {
        "id": suite.plan_id,
        "suite_name": suite.name,
        "suite_text": suite.text,
        "suite_sha256": hashlib.sha256(suite.text.encode()).hexdigest(),
        "dataset_sha256": suite.dataset_sha256,
        "folder": str(suite.folder.resolve()),
        "arms": _stored_arms(suite),
    }
    return write_plan(store, plan, suite.cases(), suite.variables, suite.files(), waiting)


def feed_of(store: Store, job: Job) -> CaseFeed:
    """Return the cases of a stored plan; what was not stored when its run stopped is read from its dataset."""
    plan = store.plan(job.plan_id)
    if not plan.unfinished or job.mode == "rescore":
        with store.reading() as connection:
            return CaseFeed(planned=planned_cases(connection, plan.id))
    selected = next(run.selected for run in store.runs() if run.plan_id == plan.id)  # of all its runs alike
    suite = _suite_of(plan, RunOptions(**(selected or {})))
    if suite is None:
        raise FairtrialError(
            f"run {job.run_id} stopped before all its cases were read, and its dataset has changed since then: run the "
            "suite again; with --cache it reuses the answers to cases that are the same"
        )
    row = {name: getattr(plan, name) for name in ("id", "arms")}
    waiting = Waiting()
    return CaseFeed(write_plan(store, row, suite.cases(), suite.variables, waiting=waiting), waiting=waiting)


def _suite_of(plan: PlanRecord, options: RunOptions) -> Suite | None:
    """Return the suite of a stored plan, if it still has the same cases."""
    try:
        suite = parse_suite(
            plan.suite_text, file="the stored suite", folder=Path(plan.folder), options=options, whole=False
        )
    except ProblemsError:  # files are missing, or the suite was made in Python
        return None
    return suite if suite.dataset_sha256 == plan.dataset_sha256 else None


async def start_run(
    store: Store,
    job: Job,
    scorers: Sequence[Scorer],
    settings: bytes,
    series: SeriesPlan | None,
    watch: Watch | None,
    write_plan: Callable[[Waiting], Generator[Planned, None, None]] | None = None,
    facts: dict[str, Any] | None = None,
) -> Run:
    """Start a new run of a plan, after checking that its MCP servers and targets are available.

    `facts` are recorded with the run: where its dataset comes from, and the hashes of its functions.
    """
    inventory = await preflight(job.arms, job.variables.hide)
    async with targets_of(job) as targets:
        looks = any(scorer.looks for scorer in scorers)
        context = await run_context(job.arms, targets, inventory, job.folder, looks=looks)
        if series is not None:
            context["series_runs"] = series.runs
        context |= {"order": RANDOM, **(facts or {})}
        judged = any(scorer.needs_judge() for scorer in scorers)
        job = msgspec.structs.replace(job, arms=with_tools(job.arms, inventory), judged=judged)
        with store.lease(job.run_id) as lease:
            waiting = Waiting()
            async with CaseFeed(write_plan(waiting), waiting=waiting) if write_plan else feed_of(store, job) as feed:
                await feed.wait_for(1)  # then the plan is stored
                lease.add_run(
                    {
                        "id": job.run_id,
                        "plan_id": job.plan_id,
                        "series_id": job.series_id,
                        "settings": settings,
                        "context": canonical_json(job.variables.hide_all(context)),
                    }
                )
                scoring = Scoring(job.folder, on_refusal=job.settings.on_refusal, functions=job.functions)
                return await work_on(store, lease, job, targets, scoring, feed, watch)


# -- session -------------------------------------------------------------------------------------


async def work_on(
    store: Store,
    lease: RunLease,
    job: Job,
    targets: dict[str, Target],
    scoring: Scoring,
    feed: CaseFeed,
    watch: Watch | None,
) -> Run:
    """Do one session of work on a run whose lease we hold, then set the run's status."""
    progress = Progress([arm.name for arm in job.arms], totals.planned_trials(store, job.plan_id, job.arms))
    if not job.fresh:
        reasons = totals.failure_reasons(store, job.run_id, scoring.number)
        progress.restore(totals.arm_totals(store, job.run_id, scoring.number), job.mode, reasons)
    if watch is not None:
        record = store.find_run(job.run_id)
        progress.title = f"{record.suite_name}, run {record.number}"
    job = msgspec.structs.replace(
        job, workspaces=kept_workspaces(store, job.run_id), journals=kept_journals(store, job.run_id)
    )
    spent = ledger.charged(store, job.run_id, job.series_id) if job.settings.budget_usd is not None else 0.0
    order_key = store.run_of_id(job.run_id).order_key
    engine = Engine(job, targets, store, lease, scoring, feed, progress, order_key=order_key, spent=spent)
    if job.mode != "rescore":
        lease.set_run(status="running", reason=None, ended_at=None)
    analysis_import = begin_to_import(job, feed)
    in_store = feed.waiting.call_in_thread
    try:
        async with watch(engine) if watch else nullcontext():
            try:
                await engine.run()
                if feed.complete:
                    await analysis_import
                if job.mode == "rescore" and engine.halt is None:
                    await in_store(_use_scoring, store, lease, job, scoring.number)
            finally:
                analysis_import.cancel()
                if not lease.lost:
                    await asyncio.to_thread(put_recordings_together, job.arms, job.run_id)
                    feed.waiting.longest = _STATUS_PATIENCE
                    await in_store(_set_status, store, lease, job, engine.halt)
                    if any(getattr(target, "refused", None) for target in targets.values()):
                        await in_store(_record_what_was_learned, store, lease, job, targets)
    except StoreBusyError as error:
        raise _out_of_touch(job, engine.halt, error) from error
    if engine.halt is not None:
        _raise_if_unfinished(job, engine.halt)
    return Run(store, store.find_run(job.run_id))


def _out_of_touch(job: Job, halt: Halt | None, error: StoreBusyError) -> FairtrialError:
    """Return the error for a session whose store could not be used until its time was over."""
    goes_on = "the same command" if job.mode == "rescore" else f"`fairtrial resume {job.run_id}`"
    words = f"{error}; what was stored is safe: once the store can be used, {goes_on} continues"
    return InterruptedWorkError(f"interrupted, but {words}") if halt and halt.interrupted else StoreAwayError(words)


def _record_what_was_learned(store: Store, lease: RunLease, job: Job, targets: dict[str, Target]) -> None:
    """Correct the record of what was sent if a server refused a part of it."""
    known = msgspec.json.decode(store.find_run(job.run_id).context)
    context = with_what_was_learned(known, job.arms, targets)
    lease.set_run(context=canonical_json(job.variables.hide_all(context)))


def _raise_if_unfinished(job: Job, halt: Halt) -> None:
    """Raise if a rescoring stopped, which changes nothing, or if the run cannot continue as configured."""
    if job.mode == "rescore":
        hint = "repeat the command to continue; until then the old scores stay current"
        if halt.interrupted:
            raise InterruptedWorkError(f"rescoring was interrupted; {hint}")
        kind = WorkersGoneError if halt.workerless else FairtrialError
        raise kind(f"rescoring stopped: {halt.reason}; fix that, then {hint}")
    if halt.unreadable:
        raise FairtrialError(
            f"{halt.reason}\nnothing was asked: a random order needs all cases. Correct this, then run the suite again"
        )
    if halt.workerless:
        raise WorkersGoneError(
            f"{halt.reason}; nothing that was stored is lost: `fairtrial resume {job.run_id}` goes on in one process, "
            "and with --engine or --workers on workers"
        )
    if halt.unusable:
        raise TargetUnusableError(
            f"{halt.reason}; fix it, then run the suite again "
            f"(or `fairtrial resume {job.run_id}` if the suite itself was correct)"
        )


def _use_scoring(store: Store, lease: RunLease, job: Job, number: int) -> None:
    """Make a new scoring the run's current one, provided it scored anything."""
    if not any(arm.scored for arm in totals.arm_totals(store, job.run_id, number).values()):
        reasons = totals.failure_reasons(store, job.run_id, number)
        reason = next(iter(reasons), ("", "there are no answers", 0))[1]
        raise FairtrialError(f"no answer could be scored ({reason}); the old scores stay current")
    record = msgspec.structs.replace(store.find_run(job.run_id), scoring=number)
    finish_scoring(lease, number, _settled(store, job, record))


# -- status --------------------------------------------------------------------------------------


def _set_status(store: Store, lease: RunLease, job: Job, halt: Halt | None) -> None:
    """Set the run's status; it is completed only if every planned trial has a score."""
    status = _settled(store, job, store.find_run(job.run_id))
    if job.mode == "rescore":  # rescoring does not change when the run ended
        lease.set_run(status=status)
        return
    if halt is not None and halt.interrupted:
        status = "interrupted"
    elif halt is not None and halt.decided and status == "incomplete":
        status = "stopped"
    reason = halt.reason if halt else job.stopped if status == "stopped" else None
    lease.set_run(status=status, reason=reason, ended_at=time.time())


def _settled(store: Store, job: Job, record: RunRecord) -> str:
    status = _completeness(store, record, job.arms)
    if status == "incomplete" and job.stopped is not None and job.mode != "resume":
        return "stopped"  # retrying or rescoring does not make a stopped run incomplete
    return status


def settled_status(store: Store, record: RunRecord, scoring: int) -> str:
    """Return a run's status by another of its scorings: completed if every planned trial has a score."""
    if record.status not in ("completed", "incomplete"):
        return record.status
    arms = store.arms(store.plan(record.plan_id))
    return _completeness(store, msgspec.structs.replace(record, scoring=scoring), arms)


def _completeness(store: Store, record: RunRecord, arms: tuple[Arm, ...]) -> str:
    if store.plan(record.plan_id).unfinished:
        return "incomplete"
    if record.origin is not None:  # failures are final there: nothing can be asked again
        return "incomplete" if record.origin["unfinished"] else "completed"
    planned = totals.planned_trials(store, record.plan_id, arms)
    scored = sum(arm.scored for arm in totals.arm_totals(store, record.id, record.scoring).values())
    return "completed" if scored == sum(planned) else "incomplete"
