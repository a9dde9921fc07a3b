"""The engine: one session of work on a run. It takes trials from the plan, has them carried out, stores the results,
counts them once they are durable, and stops without losing anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from fairtrial.core import registry
from fairtrial.core.answer import PENDING, UNUSABLE, Answer, EarlierTurn, Failure, Outcome
from fairtrial.core.errors import FairtrialError, ProblemsError, WorkersGoneError
from fairtrial.core.experiment import Arm
from fairtrial.core.judge import Judgement
from fairtrial.core.listening import NOBODY, Listener
from fairtrial.core.money import Cost
from fairtrial.core.order import case_order
from fairtrial.core.score import Score, Unscored
from fairtrial.core.settings import StopSpec, target_specs
from fairtrial.core.target import Target
from fairtrial.core.trial import Trial
from fairtrial.engine.batch_book import BatchBook
from fairtrial.engine.decision import Decision
from fairtrial.engine.early_stop import EarlyStop
from fairtrial.engine.engines import backend_of
from fairtrial.engine.executor import Executor
from fairtrial.engine.feed import CaseFeed
from fairtrial.engine.job import Halt, Job
from fairtrial.engine.limits import calls_allowed
from fairtrial.engine.local import LocalExecutor
from fairtrial.engine.patience import Patience
from fairtrial.engine.progress import Progress
from fairtrial.engine.reader import SLICE, StoreReader
from fairtrial.engine.recorder import Recorder
from fairtrial.engine.scoring import Scoring
from fairtrial.engine.trials import trials_of
from fairtrial.engine.workers import for_each
from fairtrial.judging.trying import try_judge
from fairtrial.providers.retirement import gone
from fairtrial.store import Store
from fairtrial.store.lease import RunLease
from fairtrial.store.todo import next_step


class Engine:
    """One session of work on one run."""

    def __init__(
        self,
        job: Job,
        targets: dict[str, Target],
        store: Store,
        lease: RunLease,
        scoring: Scoring,
        feed: CaseFeed,
        progress: Progress,
        *,
        order_key: str | None,
        spent: float = 0.0,
    ) -> None:
        """`order_key`: what the random order of cases is drawn from; None asks them in the suite's order."""
        self.job, self.progress = _within_open_files(job, progress), progress
        self.halt: Halt | None = None
        self.listen: Callable[[Trial], Listener] | None = None
        self._patience = Patience(self.job.settings.concurrency)
        self._answered: set[str] = set()
        self._given_up: dict[str, str] = {}  # targets that stopped working; the others continue without them
        self._task: asyncio.Task[None] | None = None  # what an interrupt cancels
        self._feed, progress.growing = feed, not feed.complete
        self._order_key, self._order = order_key, case_order(None, 0)  # drawn when all cases are stored
        self._decision: EarlyStop | None = None
        self._case_completed = asyncio.Event()  # wakes lanes that were too far ahead
        self._waiting = progress.store = feed.waiting
        self._reader = StoreReader(store, self.job, scoring.number, self._waiting)
        self._recorder = Recorder(lease, self.job, scoring, spent, self._waiting)
        self._book = BatchBook(store, lease, self._recorder.save_batch, self._waiting)
        self._executor = self._executor_of(targets, scoring)
        self._with_workspaces = {arm.target.id for arm in job.arms if _uses_workspace(arm.target.kind)}
        progress.held = self._executor.held
        progress.patient = any(spec.batch for spec in target_specs(job.arms, job.settings))

    def _executor_of(self, targets: dict[str, Target], scoring: Scoring) -> Executor:
        backend = backend_of(self.job.where)
        budget, reader = self._recorder.budget, self._reader
        if backend is None:
            return LocalExecutor(self.job, targets, scoring, budget, reader.cached_answer, reader.file, book=self._book)
        from fairtrial.engine.cluster.executor import ClusterExecutor  # only runs with workers need it

        return ClusterExecutor(
            self.job, targets, scoring, budget, reader.cached_answer, reader.file, backend, self._book
        )

    def interrupt(self) -> None:
        """Stop now: cancel calls in flight and keep everything already answered."""
        self._waiting.hurry()
        if (self._task is not None and self._task.done()) or (self.halt is not None and self.halt.interrupted):
            return
        self.halt, self.progress.stopping = Halt("interrupted", interrupted=True), True
        if self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Work until nothing is left to do, or until `halt` says why the run stopped."""
        async with self._recorder:
            self._task = asyncio.create_task(self._work())
            if self.halt is not None:
                self._task.cancel()
            try:
                await self._task
            except asyncio.CancelledError:
                self._waiting.hurry()
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)
                if self.halt is None or not self.halt.interrupted:
                    raise
            except WorkersGoneError as error:
                self._stop(Halt(str(error), workerless=True))

    async def _work(self) -> None:
        if self.progress.patient and not self.job.fresh:
            await self._book.load()
        try:
            async with self._executor:  # its last costs are recorded
                await self._all_lanes()
        except BaseExceptionGroup as group:
            raise _first_exception(group) from group
        if self._given_up:
            self._stop(Halt("; ".join(self._given_up.values())))

    async def _all_lanes(self) -> None:
        await self._draw_order()
        if self.halt is None:
            await self._try_judges()
        if self.halt is not None:
            return
        async with asyncio.TaskGroup() as group:
            for lane in self._executor.lanes():
                at_once = lane.width if self._decision else lane.trials
                group.create_task(for_each(self._trials(lane.arms), self._carry_out, at_once))

    async def _try_judges(self) -> None:
        """Call every paid judge once, before paying for answers that it could not judge."""
        for judge in self._executor.judges() if self.job.judged else ():
            if await self._reader.has_judged(judge.key):
                continue
            self.progress.trying = judge.name
            failure = await try_judge(judge)
            self.progress.trying = ""
            if failure is not None:
                why = self._gone_judge(judge.name) if failure.kind == "model" else ""
                reason = f"the judge {judge.name} cannot be used ({why}{failure.message}); no answers were requested"
                self._stop(Halt(reason, unusable=not failure.retryable))

    async def _trials(self, arms: Sequence[Arm]) -> AsyncIterator[Trial]:
        """Yield the remaining trials of these arms, slice by slice, so that memory does not grow with the plan."""
        job = self.job
        for first in range(0, len(self._order), SLICE):
            with self._executor.reading():
                cases, stored, turns = await self._reader.slice(self._order[first : first + SLICE].tolist())
            numbers = {case.position: first + number for number, case in enumerate(cases)}
            for planned in trials_of(cases, arms, benchmark_mode=job.settings.benchmark_mode):
                trial, place = planned, planned.place
                if place in turns:
                    trial = msgspec.structs.replace(planned, turns=turns[place])
                if self.halt is not None:
                    return
                row = stored.get(place)
                step = next_step(row, job.mode)
                if self._decision is not None:
                    await self._wait_for_other_lanes(numbers[trial.case.position])
                    if trial.arm.position in self._decision.left:
                        continue
                    self._decision.expect(trial.case)
                    if step == "nothing" and row is not None:
                        await self._check_decision(trial, row["score_value"])
                if step == "ask":
                    yield trial
                elif step == "score":
                    assert row is not None
                    yield msgspec.structs.replace(trial, stored=self._reader.answer(row))

    async def _draw_order(self) -> None:
        """Wait until all cases are stored, then draw their order; stop the run if one turns out to be unreadable."""
        feed, stop = self._feed, self.job.settings.stop
        try:
            while self.progress.growing:
                planned = [feed.planned.trials(arm) for arm in self.job.arms]
                self.progress.plan(planned, growing=not feed.complete)
                await feed.wait_for(feed.planned.cases + 1)
        except ProblemsError as error:
            self._stop(Halt(str(error), unreadable=True))
            return
        self._order = case_order(self._order_key, feed.planned.cases)
        if stop is not None and not stop.over and self.job.mode == "resume":
            self._decision = self._early_stop(stop)

    async def _wait_for_other_lanes(self, number: int) -> None:
        """If the run may stop at any case, keep lanes from running far ahead: their answers might not be needed."""
        while self._decision is not None and self.halt is None:
            if number < self._decision.limit(self.job.settings.concurrency) and not self._decision.due:
                return
            self._case_completed.clear()
            await self._case_completed.wait()

    def _early_stop(self, stop: StopSpec) -> EarlyStop:
        if not stop.looks:
            return Decision(stop, self.job.arms, self._order)
        from fairtrial.engine.planned_looks import PlannedLooks  # imports numpy, which only few runs need

        settings = self.job.settings
        largest = settings.largest if settings.primary_metric is None else None
        return PlannedLooks(stop, self.job.arms, self._order, largest=largest)

    async def _check_decision(self, trial: Trial, score: float | None) -> None:
        """Register a finished trial, and stop the run if its question is answered."""
        if self._decision is None:
            return
        self._decision.ended(trial.case.position, trial.arm.position, score)
        if self._decision.due:
            await asyncio.to_thread(self._decision.look)
            self.progress.leave(self._decision.left)
        if self._decision.reason is not None:
            self._stop(Halt(self._decision.reason, decided=True))
        self._decision.due = False
        self._case_completed.set()

    async def _carry_out(self, trial: Trial) -> None:
        """Carry out one trial, if it is still wanted: ask, store, score, store, count."""
        if not self.wanted(trial):
            return
        if trial.stored is not None and self.job.settings.judges:
            trial = msgspec.structs.replace(trial, judgements=await self._reader.judgements(trial))
        if trial.arm.target.id in self._with_workspaces:
            trial = await self._reader.with_changes(trial)
        listener = self.listen(trial) if self.listen is not None and trial.stored is None else NOBODY
        with self.progress.under_way(trial):
            await self._executor.carry_out(trial, self, listener)

    def wanted(self, trial: Trial) -> bool:
        return self.halt is None and trial.arm.target.id not in self._given_up

    async def turn_answered(self, trial: Trial, number: int, turn: EarlierTurn, cost: Cost) -> None:
        await self._recorder.save_turn(trial, number, turn, cost)

    async def answered(self, trial: Trial, outcome: Outcome) -> Answer | None:
        """Store an answer or a failure reported by the executor; return an answer to be scored once it is durable."""
        if self._left_undone(trial, outcome):
            return None
        outcome = await self._recorder.save_outcome(trial, outcome)
        self.progress.answered(trial, outcome)
        if isinstance(outcome.result, Failure):
            await self._check_decision(trial, None)
            return None
        return outcome.result

    async def verdicts(self, trial: Trial) -> tuple[Judgement, ...]:
        """Return the verdicts that an earlier run has on an answer from the cache."""
        return await self._reader.cached_judgements(trial.id)

    async def scored(self, trial: Trial, result: Score | Unscored) -> None:
        """Store a score, or the reason for none, reported by the executor."""
        if isinstance(result, Unscored) and result.kind == "budget":
            self._stop(self._budget_reached())
            # Verdicts that were paid for are kept, and reused when the budget is raised.
            await self._recorder.save_judgements(trial, result)
            return
        await self._recorder.save_score(trial, result)
        self._count_verdicts(result.judgements)
        self.progress.scored(trial, result)
        await self._check_decision(trial, result.value if isinstance(result, Score) else None)

    def _count_verdicts(self, judgements: Sequence[Judgement]) -> None:
        """Stop the run if a judge keeps failing: paying for more answers would be a waste."""
        for judgement in judgements:
            if judgement.stored is not None or judgement.failure_kind == "budget":
                continue
            name = f"the judge {judgement.judge}"
            if judgement.failure_kind is None:
                self._patience.succeeded(name)
            elif self._patience.failed(name, gone=judgement.failure_kind == "model"):
                why = self._gone_judge(judgement.judge) if judgement.failure_kind == "model" else ""
                reason = f"the last {self._patience.count(name)} verdicts all failed ({judgement.failure_message})"
                self._stop(Halt(f"{name}: {why}{reason}"))

    def _gone_judge(self, name: str) -> str:
        """Return what happened to the model of a judge, as the beginning of a sentence."""
        spec = next((judge for judge in self.job.settings.judges if judge.name == name), None)
        return f"{gone(spec.target)}; " if spec else ""

    def _budget_reached(self) -> Halt:
        return Halt(f"budget of ${self.job.settings.budget_usd:g} reached: another call could exceed it")

    def _left_undone(self, trial: Trial, outcome: Outcome) -> bool:
        """Return whether this trial was not really tried and is left for another session."""
        result, target = outcome.result, trial.arm.target.id
        if self._recorder.budget.exhausted:
            self._stop(self._budget_reached())
        if isinstance(result, Answer):
            self._answered.add(target)
            self._patience.succeeded(target)
            return False
        if result.kind == "budget":
            return True
        if result.kind == PENDING:
            self._stop(Halt(f"{target}: {result.message}"))
            return True
        if result.kind in UNUSABLE and target not in self._answered:
            problem = "its key was rejected" if result.kind == "auth" else gone(trial.arm.target)
            self._stop(Halt(f"{target}: {problem} ({result.message})", unusable=True))
            return True
        if self._patience.failed(target, gone=result.kind == "model"):
            count = self._patience.count(target)
            why = f"{gone(trial.arm.target)}; " if result.kind == "model" else ""
            self._given_up.setdefault(target, f"{target}: {why}the last {count} trials all failed ({result.message})")
            if len(self._given_up) == len({arm.target.id for arm in self.job.arms}) or self._decision is not None:
                self._stop(Halt("; ".join(self._given_up.values())))
        return False

    def _stop(self, halt: Halt) -> None:
        self._case_completed.set()
        if self.halt is None:
            reason = self.job.variables.hide(halt.reason)
            self.halt = msgspec.structs.replace(halt, reason=reason)


def _within_open_files(job: Job, progress: Progress) -> Job:
    """Return the job with its concurrency limited to the files that this process may open."""
    wanted = job.settings.concurrency
    allowed = calls_allowed(wanted)
    if allowed == wanted:
        return job
    progress.note = f"concurrency limited to {allowed}: this process may not open more files (see `ulimit -n`)"
    return msgspec.structs.replace(job, settings=msgspec.structs.replace(job.settings, concurrency=allowed))


def _first_exception(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _uses_workspace(kind: str) -> bool:
    """Return whether targets of a kind work in a folder; those that another tool asked are of no kind that is known."""
    try:
        return bool(registry.load("targets", kind).uses_workspace)
    except FairtrialError:
        return False
