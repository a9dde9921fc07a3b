"""The engine: one session of work on a run. It takes trials from the plan, has them carried out, records what came of
them, counts it once it is durable, and ends with nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from fairtrial.core.answer import UNUSABLE, Answer, Failure, Outcome
from fairtrial.core.experiment import Arm
from fairtrial.core.judge import Judgement
from fairtrial.core.listening import NOBODY, Listener
from fairtrial.core.score import Score, Unscored
from fairtrial.core.stopping import case_order
from fairtrial.core.target import Target
from fairtrial.core.trial import Trial
from fairtrial.engine.decision import Decision
from fairtrial.engine.executor import Executor, Lane
from fairtrial.engine.job import Halt, Job
from fairtrial.engine.limits import calls_allowed
from fairtrial.engine.local import LocalExecutor
from fairtrial.engine.patience import Patience
from fairtrial.engine.progress import Progress
from fairtrial.engine.reader import SLICE, Reader
from fairtrial.engine.recorder import Recorder
from fairtrial.engine.scoring import Scoring
from fairtrial.engine.trials import trials_of
from fairtrial.engine.workers import for_each
from fairtrial.store import Store
from fairtrial.store.todo import next_step


class Engine:
    """One session of work on one run."""

    def __init__(
        self,
        job: Job,
        targets: dict[str, Target],
        store: Store,
        scoring: Scoring,
        progress: Progress,
        *,
        spent: float = 0.0,
    ) -> None:
        self.job, self.progress = _within_open_files(job, progress), progress
        self.halt: Halt | None = None
        self.listen: Callable[[Trial], Listener] | None = None
        self._patience = Patience(self.job.settings.concurrency)
        self._answered: set[str] = set()
        self._given_up: dict[str, str] = {}  # targets that are not there any more; the others go on without them
        self._lanes_task: asyncio.Task[None] | None = None
        self._order: list[int] | None = None
        self._decision: Decision | None = None
        if job.settings.stop is not None:
            self._order = case_order(job.run_id, job.case_count)
            if job.mode == "resume" and not job.settings.stop.over:
                self._decision = Decision(job.settings.stop, job.arms, self._order)
        self._moved = asyncio.Event()  # a case is complete: lanes that were too far ahead may go on
        self._reader = Reader(store, self.job, scoring.number, self._order)
        self._recorder = Recorder(store, self.job, scoring, spent, progress.lock)
        self._executor: Executor = LocalExecutor(
            self.job, targets, scoring, self._recorder.budget, self._reader.cached_answer
        )

    def interrupt(self) -> None:
        """Stop now: calls under way are given up, everything answered is kept."""
        self.halt = Halt("interrupted", interrupted=True)
        if self._lanes_task is not None:
            self._lanes_task.cancel()

    async def run(self) -> None:
        """Work until nothing is left to do, or until `halt` says why not."""
        async with self._executor, self._recorder:
            self._lanes_task = asyncio.create_task(self._all_lanes())
            try:
                await self._lanes_task
                if self._given_up:
                    self._stop(Halt("; ".join(self._given_up.values())))
            except asyncio.CancelledError:
                self._lanes_task.cancel()
                await asyncio.gather(self._lanes_task, return_exceptions=True)
                if self.halt is None or not self.halt.interrupted:
                    raise
            except BaseExceptionGroup as group:
                raise _first(group) from group
            finally:
                self._reader.close()

    async def _all_lanes(self) -> None:
        await self._try_judges()
        if self.halt is not None:
            return
        async with asyncio.TaskGroup() as group:
            for lane in self._executor.lanes():
                group.create_task(self._work_through(lane))

    async def _try_judges(self) -> None:
        """Ask every judge that costs money once before answers are bought that it could not judge."""
        for judge in self._executor.judges() if self.job.judged else ():
            if await self._reader.has_judged(judge.key):
                continue
            failure = await self._executor.try_judge(judge)
            if failure is not None:
                reason = f"the judge {judge.name} cannot be used ({failure.message}); no answer was bought for it"
                self._stop(Halt(reason, unusable=not failure.retryable))

    async def _work_through(self, lane: Lane) -> None:
        async def attend(trial: Trial) -> None:
            if self.halt is None and trial.arm.target.id not in self._given_up:
                await self._attend(trial)

        workers = lane.width if self._decision else 2 * lane.width + 16
        await for_each(self._trials(lane.arms), attend, workers)

    async def _trials(self, arms: Sequence[Arm]) -> AsyncIterator[Trial]:
        """What is left to do in these arms, slice by slice, so that memory does not grow with the plan."""
        job = self.job
        for first in range(0, job.case_count, SLICE):
            cases, stored = await self._reader.slice(first)
            numbers = {case.position: first + number for number, case in enumerate(cases)}
            for trial in trials_of(cases, arms, benchmark_mode=job.settings.benchmark_mode):
                if self.halt is not None:
                    return
                row = stored.get(trial.place)
                step = next_step(row, job.mode)
                if self._decision is not None:
                    await self._keep_level(numbers[trial.case.position])
                    self._decision.expect(trial.case)
                    if step == "nothing" and row is not None:
                        self._look(trial, row["score_value"])
                if step == "ask":
                    yield trial
                elif step == "score":
                    assert row is not None
                    yield msgspec.structs.replace(trial, stored=self._reader.answer(row))

    async def _keep_level(self, number: int) -> None:
        """Where the run may end at any case, no lane runs far ahead of the others: its answers might not be needed."""
        while self._decision is not None and self.halt is None:
            if number <= self._decision.complete + self.job.settings.concurrency:
                return
            self._moved.clear()
            await self._moved.wait()

    def _look(self, trial: Trial, score: float | None) -> None:
        """One more trial has ended: is the question answered?"""
        if self._decision is None:
            return
        self._decision.ended(trial.case.position, trial.arm.position, score)
        self._moved.set()
        if self._decision.reason is not None:
            self._stop(Halt(self._decision.reason, decided=True))

    async def _attend(self, trial: Trial) -> None:
        """The life of a trial: asked, stored, scored, stored, counted."""
        if trial.stored is not None and self.job.settings.judges:
            trial = msgspec.structs.replace(trial, judgements=await self._reader.judgements(trial))
        listener = self.listen(trial) if self.listen is not None and trial.stored is None else NOBODY
        await self._executor.carry_out(trial, self, listener)

    async def answered(self, trial: Trial, outcome: Outcome) -> Answer | None:
        """An executor reports an answer or a failure; an answer is to be scored once it is durable."""
        if self._stops_the_run(trial, outcome):
            return None
        outcome = await self._recorder.save_outcome(trial, outcome)
        self.progress.answered(trial, outcome)
        if isinstance(outcome.result, Failure):
            self._look(trial, None)
            return None
        return outcome.result

    async def scored(self, trial: Trial, result: Score | Unscored) -> None:
        """An executor reports a score, or why there is none."""
        if isinstance(result, Unscored) and result.kind == "budget":
            self._stop(self._budget_reached())
            # Verdicts that were paid for are kept, and used when there is more money.
            await self._recorder.save_judgements(trial, result)
            return
        await self._recorder.save_score(trial, result)
        self._count_verdicts(result.judgements)
        self.progress.scored(trial, result)
        self._look(trial, result.value if isinstance(result, Score) else None)

    def _count_verdicts(self, judgements: Sequence[Judgement]) -> None:
        """A judge that fails again and again is not there; to buy more answers for it would be a waste."""
        for judgement in judgements:
            if judgement.stored is not None or judgement.failure_kind == "budget":
                continue
            name = f"the judge {judgement.judge}"
            if judgement.failure_kind is None:
                self._patience.succeeded(name)
            elif self._patience.failed(name):
                reason = f"the last {self._patience.count(name)} verdicts all failed ({judgement.failure_message})"
                self._stop(Halt(f"{name}: {reason}"))

    def _budget_reached(self) -> Halt:
        return Halt(f"budget of ${self.job.settings.budget_usd:g} reached: another call could exceed it")

    def _stops_the_run(self, trial: Trial, outcome: Outcome) -> bool:
        """Whether this trial was not really tried, and stays to be done in another session."""
        result, target = outcome.result, trial.arm.target.id
        if self._recorder.budget.exhausted:
            self._stop(self._budget_reached())
        if isinstance(result, Answer):
            self._answered.add(target)
            self._patience.succeeded(target)
            return False
        if result.kind == "budget":
            return True
        if result.kind in UNUSABLE and target not in self._answered:
            what = "its key is refused" if result.kind == "auth" else "there is no such model"
            self._stop(Halt(f"{target}: {what} ({result.message})", unusable=True))
            return True
        if self._patience.failed(target):
            count = self._patience.count(target)
            self._given_up.setdefault(target, f"{target}: the last {count} trials all failed ({result.message})")
            if len(self._given_up) == len({arm.target.id for arm in self.job.arms}) or self._decision is not None:
                self._stop(Halt("; ".join(self._given_up.values())))
        return False

    def _stop(self, halt: Halt) -> None:
        self._moved.set()
        if self.halt is None:
            reason = self.job.variables.hide(halt.reason)
            self.halt = msgspec.structs.replace(halt, reason=reason)


def _within_open_files(job: Job, progress: Progress) -> Job:
    """The same job with no more calls at once than this process may have open."""
    wanted = job.settings.concurrency
    allowed = calls_allowed(wanted)
    if allowed == wanted:
        return job
    progress.note = f"only {allowed} calls at once: this process may not open more files (ulimit -n)"
    return msgspec.structs.replace(job, settings=msgspec.structs.replace(job.settings, concurrency=allowed))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that started it all."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
