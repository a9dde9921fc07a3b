"""A worker: carries out the trials that the driver sends, with the very executor that a single process uses.

It has no store. What has to be durable is reported to the driver, and the worker goes on when the driver says so.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from itertools import count
from typing import Any

import msgspec

from fairtrial.core.answer import Answer, EarlierTurn, Failure, Outcome
from fairtrial.core.errors import FairtrialError
from fairtrial.core.judge import Judgement
from fairtrial.core.listening import NOBODY
from fairtrial.core.money import Cost
from fairtrial.core.score import Score, Unscored
from fairtrial.core.trial import Trial
from fairtrial.engine.budget import Need
from fairtrial.engine.cluster.leases import LeasedBudget
from fairtrial.engine.cluster.messages import Assignment, Briefing, DriverOrders, Report, WorkerCall, decode, encode
from fairtrial.engine.cluster.shares import LeasedLimiter
from fairtrial.engine.files import FileCache
from fairtrial.engine.limits import Limiter
from fairtrial.engine.local import LocalExecutor
from fairtrial.engine.provenance import own_version
from fairtrial.engine.scoring import Scoring
from fairtrial.engine.targets import targets_of

PULSE = 2.0  # seconds after which a worker reports, even if there is nothing to report
_LARGE = 256  # calls in a batch that is sent at once


class Worker:
    """Carries out trials and reports to the driver. An outer process delivers orders and collects reports."""

    def __init__(self, orphaned: Callable[[], bool] = lambda: False) -> None:
        """`orphaned` says whether the driver has gone, even if nothing else has noticed that yet."""
        self._orphaned = orphaned
        self._stack = AsyncExitStack()
        self._calls: list[WorkerCall] = []
        self._ids = count()
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._trials: dict[int, asyncio.Task[None]] = {}
        self._limiters: dict[str, LeasedLimiter] = {}
        self._reportable = asyncio.Event()
        self._working = True
        self._budget = LeasedBudget(self._ask_for_money, self._reportable.set, limited=False)

    async def open(self, briefing: bytes) -> str | None:
        """Open the targets; return why trials cannot be carried out here, or None."""
        try:
            await self._open(decode(briefing))
        except FairtrialError as error:
            return str(error)
        except (ImportError, AttributeError, pickle.UnpicklingError) as error:
            return f"the worker on {socket.gethostname()} cannot load what the suite consists of: {error}"
        return None

    async def _open(self, briefing: Briefing) -> None:
        _check(briefing)
        for name, value in briefing.environment.items():
            os.environ.setdefault(name, value)
        job = briefing.job
        self._arms = {arm.position: arm for arm in job.arms}
        limited = job.settings.budget_usd is not None
        self._budget = LeasedBudget(self._ask_for_money, self._reportable.set, limited=limited)
        scoring = Scoring(
            job.folder,
            briefing.scorer,
            briefing.scoring,
            on_refusal=job.settings.on_refusal,
            functions=job.functions,
        )
        targets = await self._stack.enter_async_context(targets_of(job))
        self._executor = await self._stack.enter_async_context(
            LocalExecutor(
                job,
                targets,
                scoring,
                self._budget,
                partial(self.ask, None, "lookup"),
                FileCache(partial(self.ask, None, "file")).get,
                limiter_of=self._limiter_of,
                share=briefing.share,
            )
        )

    def _limiter_of(self, name: str, most: int) -> Limiter:
        self._limiters[name] = LeasedLimiter(most, self._reportable.set, self._orphaned)
        return self._limiters[name]

    async def deliver(self, batch: bytes) -> None:
        """Take a batch of orders."""
        orders: DriverOrders = decode(batch)
        for name, share in orders.shares.items():
            if name in self._limiters:
                self._limiters[name].apply(share)
        if orders.tight:
            self._budget.tighten()
        for number, reply in orders.replies.items():
            self._reply(number, reply)
        for assignment in orders.assignments:
            task = asyncio.create_task(self._carry_out(assignment))
            self._trials[assignment.number] = task
        for number in orders.cancelled:
            if number in self._trials:
                self._trials[number].cancel()

    def _reply(self, number: int, reply: Any) -> None:
        pending = self._pending.pop(number)
        is_grant = isinstance(reply, float)
        if is_grant:
            self._budget.arrived(reply)
        if not pending.done():
            pending.set_result(reply)
        elif is_grant:
            self._budget.unclaimed(reply)

    async def collect(self, linger: float) -> bytes:
        """Return the next batch of reports: wait until there is one, and a little longer for more.

        It is empty if nothing was to be reported for a while, so that the driver knows that this process goes on.
        """
        if not self._working:
            await asyncio.sleep(PULSE)
            return encode(Report())  # the last one with anything in it is that of `close`
        with suppress(TimeoutError):
            async with asyncio.timeout(PULSE):
                await self._reportable.wait()
        if len(self._calls) < _LARGE and linger:
            await asyncio.sleep(linger)
        return self._report() if self._working else encode(Report())

    def _report(self, *, last: bool = False) -> bytes:
        self._reportable.clear()
        calls, self._calls = self._calls, []
        limits = {name: limiter.report() for name, limiter in self._limiters.items()}
        return encode(Report(calls, limits, self._budget.report(last=last)))

    def drop(self) -> None:
        """Begin nothing more, and cancel what was begun."""
        self._working = False
        for task in self._trials.values():
            task.cancel()

    async def close(self) -> bytes:
        """Cancel what is left, close everything, and return the last report."""
        self.drop()
        await asyncio.gather(*self._trials.values(), return_exceptions=True)
        await self._stack.aclose()
        return self._report(last=True)

    async def _carry_out(self, assignment: Assignment) -> None:
        number, problem = assignment.number, None
        reports = _TrialReports(self, number)
        try:
            listener = reports if assignment.listened else NOBODY
            await self._executor.carry_out(assignment.trial(self._arms), reports, listener)
        except Exception as error:  # as in a single process, a mistake of ours ends the run
            problem = f"{type(error).__name__}: {error}"
        finally:
            del self._trials[number]
            self.tell(number, "ended", problem)

    # -- calls to the driver -------------------------------------------------------------------------

    def tell(self, trial: int | None, name: str, *arguments: Any) -> None:
        """Report something to the driver, without waiting."""
        self._calls.append(WorkerCall(trial, name, encode(arguments)))
        self._reportable.set()

    def ask(self, trial: int | None, name: str, *arguments: Any) -> asyncio.Future[Any]:
        """Report something to the driver; its reply can be waited for."""
        body, number = encode(arguments), next(self._ids)
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[number] = reply
        self._calls.append(WorkerCall(trial, name, body, number))
        self._reportable.set()
        return reply

    async def _ask_for_money(self, need: Need) -> float | None:
        reply: asyncio.Future[float | None] = self.ask(None, "grant", need)
        try:
            return await reply
        except asyncio.CancelledError:
            granted = reply.result() if reply.done() and not reply.cancelled() else None
            if granted is not None:  # it arrived, and its call was cancelled at the same moment
                self._budget.unclaimed(granted)
            raise


class _TrialReports:
    """Reports on one trial, and the listener of its answer: everything goes to the driver."""

    def __init__(self, worker: Worker, number: int) -> None:
        self._worker, self._number = worker, number

    def wanted(self, trial: Trial) -> bool:
        return True  # the driver sends few at a time, and asks itself before it does

    async def turn_answered(self, trial: Trial, number: int, turn: EarlierTurn, cost: Cost) -> None:
        await self._worker.ask(self._number, "turn_answered", number, turn, cost)

    async def answered(self, trial: Trial, outcome: Outcome) -> Answer | None:
        try:
            scored = await self._worker.ask(self._number, "answered", outcome)
        except _UNENCODABLE as error:
            outcome = msgspec.structs.replace(outcome, result=_unsendable(Failure, "answer", error), sent={})
            scored = await self._worker.ask(self._number, "answered", outcome)
        return outcome.result if scored and isinstance(outcome.result, Answer) else None

    async def verdicts(self, trial: Trial) -> tuple[Judgement, ...]:
        judgements: tuple[Judgement, ...] = await self._worker.ask(self._number, "verdicts")
        return judgements

    async def scored(self, trial: Trial, result: Score | Unscored) -> None:
        try:
            self._worker.tell(self._number, "scored", result)
        except _UNENCODABLE as error:
            unscored = msgspec.structs.replace(_unsendable(Unscored, "score", error), judgements=result.judgements)
            self._worker.tell(self._number, "scored", unscored)

    def begin(self) -> None:
        self._worker.tell(self._number, "begin")

    def piece(self, text: str) -> None:
        self._worker.tell(self._number, "piece", text)

    def end(self) -> None:
        self._worker.tell(self._number, "end")


_UNENCODABLE = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError)


def _unsendable(kind: Callable[..., Any], what: str, error: Exception) -> Any:
    return kind(kind="malformed", message=f"the {what} holds what cannot be sent to another process ({error})")


def _check(briefing: Briefing) -> None:
    """Raise FairtrialError if this process cannot do what the driver could."""
    where = f"the worker on {socket.gethostname()}"
    if briefing.version != own_version():
        raise FairtrialError(
            f"{where} has fairtrial {own_version()} and the driver {briefing.version}: install the same version"
        )
    folder = briefing.job.folder
    if briefing.needs_folder and not folder.is_dir():
        raise FairtrialError(
            f"{where} does not have the suite's folder {folder}, whose code takes part in the run: put it on storage "
            "that all machines share, or send it along with `ray job submit --working-dir`"
        )
