"""Have trials carried out by workers: send them out, store what comes back, and begin again where a worker is lost.

Everything that must be in one place stays with the driver: the store, the budget, the limits of providers, and what is
left to do. A trial whose worker is lost begins again after its last step that is durable.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from functools import partial
from itertools import count
from typing import Any

import msgspec

from fairtrial.core.answer import EarlierTurn, Failure, Outcome
from fairtrial.core.errors import StoreError
from fairtrial.core.experiment import Arm, Resources
from fairtrial.core.file import Attachment, File
from fairtrial.core.judge import Judge
from fairtrial.core.listening import NOBODY, Listener
from fairtrial.core.money import Cost
from fairtrial.core.options import functions_in
from fairtrial.core.score import Score, Unscored
from fairtrial.core.settings import MODEL_TIMEOUT
from fairtrial.core.target import Target
from fairtrial.core.trial import Trial
from fairtrial.core.variables import Variables
from fairtrial.engine.batch_book import BatchBook
from fairtrial.engine.budget import Budget, Need
from fairtrial.engine.cancelling import to_the_end
from fairtrial.engine.cluster.crew import Crew
from fairtrial.engine.cluster.leases import portion
from fairtrial.engine.cluster.link import Backend, WorkerLostError
from fairtrial.engine.cluster.members import ALONE_AFTER, CrewMember, Work
from fairtrial.engine.cluster.messages import Assignment, Briefing, Report, Use, WorkerCall, decode
from fairtrial.engine.cluster.shares import SharedLimit
from fairtrial.engine.executor import Lane, Reports
from fairtrial.engine.job import Job
from fairtrial.engine.ladder import Lookup
from fairtrial.engine.limits import Limiter
from fairtrial.engine.local import LocalExecutor
from fairtrial.engine.provenance import own_version
from fairtrial.engine.scoring import Scoring

_MAX_LOSSES = ALONE_AFTER + 3  # workers that a step of a trial may take with it, the last ones doing nothing else
_GRACE = 20.0  # seconds for workers to cancel what is left and say what it cost
_TRIALS_EACH = 4  # trials that a worker has beyond those that are being asked, so that it never waits for the next one
_DIVIDE_EVERY = 0.0002  # seconds between two divisions of a limit, for each worker there is


class ClusterExecutor:
    """Asks targets and scores answers in workers."""

    _local: LocalExecutor  # for what happens before there are trials; made once the number of workers is known
    _stack: AsyncExitStack

    def __init__(
        self,
        job: Job,
        targets: dict[str, Target],
        scoring: Scoring,
        budget: Budget,
        lookup: Lookup,
        load_file: Callable[[Attachment], Awaitable[File]],
        backend: Backend,
        book: BatchBook | None = None,
    ) -> None:
        self._job, self._targets, self._scoring = job, targets, scoring
        self._budget, self._lookup, self._load_file, self._backend = budget, lookup, load_file, backend
        self._book = book
        self._limits: dict[str, SharedLimit[CrewMember]] = {}
        self._crew = Crew(backend, budget, self._take_report, self._take_back, job.variables.hide)
        self._numbers = count()
        self._tight = False
        self._dividing: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> ClusterExecutor:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._backend)
            self._local = LocalExecutor(
                self._job, self._targets, self._scoring, self._budget, self._lookup, self._load_file,
                book=self._book, limiter_of=self._limiter_of, processes=self._backend.most,
            )  # fmt: skip
            await stack.enter_async_context(self._local)
            stack.callback(self._end_tasks)
            stack.push_async_callback(self._crew.close, _GRACE)
            self._crew.silence = max(self._crew.silence, self._job.settings.timeout or MODEL_TIMEOUT)
            self._crew.trials = sum(lane.trials for lane in self.lanes())
            await self._crew.open(self._briefing, self._known_shares())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._stack.aclose()

    def _end_tasks(self) -> None:
        if self._dividing is not None:
            self._dividing.cancel()
        for task in self._tasks:
            task.cancel()

    def _limiter_of(self, name: str, most: int) -> Limiter:
        limiter = Limiter(most, self._job.settings.retry.max_wait)
        self._limits[name] = SharedLimit(limiter)
        return limiter

    def _briefing(self, share: Resources) -> Briefing:
        job, variables = self._job, self._job.variables
        scorers = [self._scoring.override] if self._scoring.override else [arm.scorer for arm in job.arms]
        own_code = any(arm.target.folder or arm.condition.function for arm in job.arms)
        return Briefing(
            job=msgspec.structs.replace(job, variables=Variables({}), folder=job.folder.resolve()),
            scorer=self._scoring.override,
            scoring=self._scoring.number,
            environment={**variables.shared(), **_named_variables(job.arms)},
            version=own_version(),
            needs_folder=own_code or any(functions_in(scorer) for scorer in scorers),
            share=dict(share),
        )

    def _known_shares(self) -> list[Resources]:
        """Return the shares of machines that trials will need, unless a case has a scorer of its own."""
        scorers = [self._scoring.resources_in(self._scoring.override or arm.scorer) for arm in self._job.arms]
        arms = zip(self._job.arms, scorers, strict=True)
        shares = [_share(arm.target.resources or {}, scorer) for arm, scorer in arms]
        return sorted(shares, key=lambda share: -share["cpu"])  # a large share is enough for a small one

    def lanes(self) -> list[Lane]:
        more = _TRIALS_EACH * self._backend.most
        return [lane._replace(trials=lane.trials + more) for lane in self._local.lanes()]

    def reading(self) -> AbstractContextManager[object]:
        return self._local.reading()

    def held(self) -> list[str]:
        words = [
            f"{name.split('#')[-1]} {held}"
            for name, limit in self._limits.items()
            if (held := limit.limiter.held(limit.waiting))
        ]
        return words + self._crew.held()

    def judges(self) -> Sequence[Judge]:
        return self._local.judges()

    # -- one trial -----------------------------------------------------------------------------------

    async def carry_out(self, trial: Trial, reports: Reports, listener: Listener) -> None:
        """Have a worker ask and score a trial; if it is lost, another one goes on after the last durable step."""
        if self._waits_for_batches(trial):  # it needs the store, and hardly any time of the processor
            return await self._local.carry_out(trial, reports, listener)
        work = Work(next(self._numbers), trial, reports, listener)
        share = _share(trial.arm.target.resources or {}, self._scoring.resources_of(trial))
        while True:
            member = await self._crew.assign(work, share)
            assignment = Assignment.of(work.number, work.trial, listened=listener is not NOBODY)
            member.order().assignments.append(assignment)
            try:
                await self._attend(work, member)
                return None
            except asyncio.CancelledError:
                await self._cancel(work, member)
                raise
            except WorkerLostError as error:
                work.losses += 1
                if work.losses >= _MAX_LOSSES:
                    return await _give_up(work, error)
            except Exception:  # the session ends; the answer may be on its way, and has been paid for
                await to_the_end(self._cancel(work, member))
                raise
            finally:
                self._crew.release(member, work)

    def _waits_for_batches(self, trial: Trial) -> bool:
        judges = self._job.settings.judges if self._job.judged else ()
        return bool(trial.arm.target.batch) or any(judge.target.batch for judge in judges)

    async def _attend(self, work: Work, member: CrewMember) -> None:
        """Pass on what a worker reports about a trial, until it has ended."""
        while True:
            call = await work.inbox.get()
            if isinstance(call, BaseException):
                raise call
            if call.name == "ended":
                (problem,) = decode(call.body)
                if problem is not None:
                    raise RuntimeError(f"a worker failed: {problem}")
                return
            reply = await getattr(self, f"_{call.name}")(work, *decode(call.body))
            if call.id is not None:
                member.order().replies[call.id] = reply
            if work.done:
                return

    async def _cancel(self, work: Work, member: CrewMember) -> None:
        """Have a trial cancelled; what it had reported before is still stored."""
        self._crew.ending = True
        if member.lost:
            return
        member.order().cancelled.append(work.number)
        try:
            async with asyncio.timeout(_GRACE):
                await self._attend(work, member)
        except (
            WorkerLostError,
            TimeoutError,
            RuntimeError,
            StoreError,
        ):  # which ends the session, wherever it is raised
            return

    async def _turn_answered(self, work: Work, number: int, turn: EarlierTurn, cost: Cost) -> None:
        await work.reports.turn_answered(work.trial, number, turn, cost)
        work.trial, work.losses = msgspec.structs.replace(work.trial, turns=(*work.trial.turns[:number], turn)), 0

    async def _answered(self, work: Work, outcome: Outcome) -> bool:
        if outcome.turns:
            work.trial = msgspec.structs.replace(work.trial, turns=outcome.turns)
        answer = await work.reports.answered(work.trial, outcome)
        if answer is not None:  # another worker would only score it
            cost = None if outcome.cached else outcome.cost.usd
            work.trial = msgspec.structs.replace(work.trial, stored=msgspec.structs.replace(answer, cost_usd=cost))
            work.losses = 0
        work.done = answer is None
        return answer is not None

    async def _verdicts(self, work: Work) -> Any:
        verdicts = await work.reports.verdicts(work.trial)
        work.trial = msgspec.structs.replace(work.trial, judgements=verdicts)
        return verdicts

    async def _scored(self, work: Work, result: Score | Unscored) -> None:
        await work.reports.scored(work.trial, result)
        work.done = True

    async def _begin(self, work: Work) -> None:
        work.listener.begin()

    async def _piece(self, work: Work, text: str) -> None:
        work.listener.piece(text)

    async def _end(self, work: Work) -> None:
        work.listener.end()

    # -- one worker ----------------------------------------------------------------------------------

    def _take_report(self, member: CrewMember, report: Report) -> None:
        member.lease.update(report.money)
        self._tighten(member)
        changed = False
        for name, limit in self._limits.items():
            changed |= limit.update(member, report.limits.get(name) or Use())
        for call in report.calls:
            if call.trial is None:
                self._start(self._reply(member, call))
            elif call.trial in member.works:
                member.works[call.trial].inbox.put_nowait(call)
        if changed and self._dividing is None:
            wait = _DIVIDE_EVERY * len(self._crew.members)
            self._dividing = asyncio.get_running_loop().call_later(wait, self._divide)

    def _divide(self) -> None:
        self._dividing = None
        for name, limit in self._limits.items():
            for member, share in limit.changes().items():
                member.order().shares[name] = share

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """End the session if a worker's question could not be answered: it would wait for ever."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._crew.fail(error)

    async def _reply(self, member: CrewMember, call: WorkerCall) -> None:
        """Answer a worker's question that concerns no trial."""
        (argument,) = decode(call.body)
        answers: dict[str, Callable[[Any], Awaitable[Any]]] = {
            "lookup": self._lookup,
            "file": self._load_file,
            "grant": partial(self._grant, member),
        }
        reply = await answers[call.name](argument)
        member.order().replies[call.id or 0] = reply

    async def _grant(self, member: CrewMember, need: Need) -> float | None:
        """Lend money to a worker: a portion while there is plenty, else what one call needs."""
        extra = None if need.target or self._tight else partial(portion, workers=self._backend.most)
        reserving = asyncio.ensure_future(self._budget.reserve(need, extra))
        await asyncio.sleep(0)
        self._tight = self._tight or self._budget.short
        for other in self._crew.members:
            self._tighten(other)
        amount = await reserving
        if amount is None:
            return None
        if member.lost:
            self._budget.settle(amount, Cost())
            return None
        member.lease.grant(amount)
        return amount

    def _tighten(self, member: CrewMember) -> None:
        """Once money is short, have a worker return what it does not need at once."""
        if self._tight and not member.tight:
            member.tight = member.order().tight = True

    def _take_back(self, member: CrewMember, lost: bool) -> None:
        """Settle what a worker that is gone had been lent."""
        asked = [work.trial.arm.target.id for work in member.works.values() if work.trial.stored is None]
        member.lease.lost(unknown=lost and any(self._targets[target].priced for target in asked))
        for limit in self._limits.values():
            limit.remove(member)
        if self._dividing is None and self._crew.members:
            self._divide()


def _share(target: Resources, scorer: Resources) -> dict[str, float]:
    """Return the share of a machine that a worker needs: enough for the larger of two demands, and a processor."""
    names = {"cpu", *target, *scorer}
    floor = {"cpu": 1.0}
    return {name: max(target.get(name, 0.0), scorer.get(name, 0.0), floor.get(name, 0.0)) for name in sorted(names)}


async def _give_up(work: Work, error: WorkerLostError) -> None:
    """Report a trial that ends the process of whoever carries it out."""
    message = f"{work.losses} worker processes in a row ended while they carried out this trial ({error})"
    if work.trial.stored is None:
        failure = Failure(kind="crashed", message=message, maybe_billed=True)
        await work.reports.answered(work.trial, Outcome(result=failure, attempts=work.losses))
    else:
        await work.reports.scored(work.trial, Unscored(kind="crashed", message=message))


def _named_variables(arms: Iterable[Arm]) -> dict[str, str]:
    given = (arm.target.options.get("env") for arm in arms)
    names = {name for env in given if isinstance(env, list) for name in env}
    return {name: os.environ[name] for name in sorted(names) if name in os.environ}
