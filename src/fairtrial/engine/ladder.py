"""The ladder of one call, one concern a rung:

    cached → retried → afforded → limited → timed → called

Waiting happens on `retried`, above `limited`, so that a call that waits holds nobody's place; latency is measured
by the target itself, below everything, so that waiting never counts as latency.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import msgspec

from fairtrial.core.answer import Answer, Failure, Journal, Outcome, Request, SoFar, Usage
from fairtrial.core.hearing import listening
from fairtrial.core.suite import Settings
from fairtrial.core.target import Target
from fairtrial.engine.budget import Budget
from fairtrial.engine.limits import Limiter
from fairtrial.engine.prices import FREE, Price
from fairtrial.engine.retry import Retries

Gate = AbstractAsyncContextManager[None]
Lookup = Callable[[str], Awaitable[Answer | None]]
_MAYBE_BILLED = frozenset({"stream", "timeout", "malformed"})
_TOKENS_OF_IMAGE = 5000  # more than any provider counts for a screenshot
_TOKENS_AROUND = 64  # what a chat template adds to a prompt, at most
_ROOM = 4.0  # an agent's trial may cost so many times the dearest one so far
_TIMEOUT, _AGENT_TIMEOUT = 120.0, 600.0  # seconds, where the suite says nothing
_LONGEST_UNSAID = 2048  # completion tokens to set aside where nobody said how many


class Ladder:
    """How one target is asked."""

    def __init__(
        self,
        target: Target,
        settings: Settings,
        *,
        gate: Gate,
        limiter: Limiter,
        budget: Budget,
        price: Price | Awaitable[Price | None],
        lookup: Lookup | None = None,
    ) -> None:
        self._target, self._settings = target, settings
        self._gate, self._limiter, self._budget = gate, limiter, budget
        self._lookup = lookup
        # The list of prices takes half a second to load: time enough to make the first calls.
        self._price: Price | None = price if isinstance(price, Price) else None
        self._pricing = None if isinstance(price, Price) else price
        self._dearest: float | None = None

    async def ask(self, request: Request) -> Outcome:
        """cached: an earlier run may have asked exactly this."""
        if self._lookup is not None:
            answer = await self._lookup(request.trial_id)
            if answer is not None:
                return Outcome(result=answer, cached=True, attempts=0, cost_usd=0.0, started_at=time.time())
        return await self._retried(request)

    async def _retried(self, request: Request) -> Outcome:
        """retried: as often as patience lasts, counting what every attempt cost."""
        patience = Retries(self._settings.retry, agent=self._target.agent)
        tried: list[str] = []
        last: Answer | Failure | None = None
        cost: float | None = 0.0
        waited = 0.0
        while True:
            started = time.time()
            result, price = await self._afforded(request)
            cost = None if cost is None or price is None else cost + price
            unpaid = isinstance(result, Failure) and result.kind == "budget"
            wait = None if unpaid else patience.wait(result)
            if wait is None:
                return Outcome(
                    # When the money ends between two attempts, the earlier one stands, with what it cost.
                    result=last if unpaid and last is not None else result,
                    attempts=request.attempt - (unpaid and last is not None),
                    cost_usd=cost,
                    waited_ms=waited * 1000,
                    tried=tuple(tried),
                    started_at=started,
                    sent=self._target.sent(request),
                )
            last = result
            tried.append(result.message if isinstance(result, Failure) else "empty answer")
            streamed_badly = isinstance(result, Failure) and result.kind == "stream"
            request = msgspec.structs.replace(
                request, attempt=request.attempt + 1, stream=request.stream and not streamed_badly
            )
            waited += wait
            await asyncio.sleep(wait)

    async def _afforded(self, request: Request) -> tuple[Answer | Failure, float | None]:
        """afforded: the dearest outcome is set aside first, then replaced by the real one."""
        if self._budget.limited:
            await self._know_price()
        most = await self._budget.reserve(lambda: self._most(request))
        if most is None:
            return Failure(kind="budget", message="the budget cannot bear another call"), 0.0
        billed = 0.0
        if self._target.many_calls and self._budget.limited:
            request = msgspec.structs.replace(request, allowance=_Allowance(most, self._price))
        try:
            result = await self._limited(request)
            await self._know_price()
            cost = self._cost(result)
            billed = self._billed(result, cost, most)
            return result, cost
        finally:
            self._budget.settle(most, billed)

    async def _know_price(self) -> None:
        if self._pricing is not None:
            self._price = await self._pricing
            self._pricing = None

    def _most(self, request: Request) -> float:
        """The most that a call can cost."""
        if not self._budget.limited:
            return 0.0
        unspent = max(0.0, self._budget.unspent)
        if self._target.many_calls:
            # The first trial is made alone, with all the money; later ones may take several times as much as the
            # dearest so far, and must stop there.
            return unspent if self._dearest is None else min(unspent, _ROOM * self._dearest)
        if self._target.names_its_cost:
            # It tells only afterwards: the first call is made alone, with all the money, and later ones with as much
            # as the dearest so far.
            return unspent if self._dearest is None else self._dearest
        if self._price is None or self._price is FREE:
            return 0.0
        # No tokenizer makes more tokens than the text has bytes.
        prompt = len(request.system.encode()) + len(request.input.encode()) + _TOKENS_AROUND
        prompt += _TOKENS_OF_IMAGE * len(request.images)
        return self._price.most(prompt, request.params.get("max_tokens") or _LONGEST_UNSAID)

    def _billed(self, result: Answer | Failure, cost: float | None, most: float) -> float:
        """What the budget counts: where nobody can say what a call cost, the worst."""
        if cost is not None:
            self._dearest = max(self._dearest or 0.0, cost)
            return cost
        return most if isinstance(result, Answer) or result.kind in _MAYBE_BILLED else 0.0

    def _cost(self, result: Answer | Failure) -> float | None:
        """What an attempt cost; None where nobody can say."""
        if result.cost_usd is not None:
            return result.cost_usd
        if self._price is FREE:
            return 0.0
        if isinstance(result, Failure) and result.given_up:
            return None
        usage: Usage | None = result.usage
        if usage is None:
            unknown = isinstance(result, Answer) or result.kind in _MAYBE_BILLED
            return None if unknown else 0.0
        return None if self._price is None else self._price.cost(usage)

    async def _limited(self, request: Request) -> Answer | Failure:
        """limited: within the lane's width, and within the run's."""
        async with self._limiter, self._gate:
            result = await self._timed(request)
        if isinstance(result, Answer):
            self._limiter.succeeded()
        elif result.kind == "rate_limited":
            self._limiter.throttled(result.retry_after)
        return result

    async def _timed(self, request: Request) -> Answer | Failure:
        """timed: no call takes longer than the time limit."""
        limit = self._settings.timeout or (_AGENT_TIMEOUT if self._target.agent else _TIMEOUT)
        request = msgspec.structs.replace(request, journal=Journal())
        try:
            async with asyncio.timeout(limit):
                return await self._called(request)
        except TimeoutError:
            return _given_up(request.journal, f"no answer within {limit:g} s")

    async def _called(self, request: Request) -> Answer | Failure:
        """called: an adapter that breaks is a failure of this call, not of the run."""
        try:
            listening.get().begin()
            return _checked(await self._target.ask(request))
        except (Exception, SystemExit) as error:  # a plug-in may do anything
            return Failure(kind="crashed", message=f"the target raised {type(error).__name__}: {error}")


class _Allowance:
    """What a trial of an agent may spend."""

    def __init__(self, usd: float, price: Price | None) -> None:
        self.usd, self._price = usd, price

    def bears(self, spent: Usage, prompt_bytes: int, completion_tokens: int) -> bool:
        """Whether one more call of this size can be paid for, after what was spent."""
        if self._price is None:
            return True
        return self._price.cost(spent) + self._price.most(prompt_bytes, completion_tokens) <= self.usd


def _given_up(journal: Journal, message: str) -> Failure:
    """A call whose time is over, with what it has done until then."""
    try:
        so_far = msgspec.convert(journal.read(), SoFar)
    except Exception:  # a plug-in may do anything
        so_far = SoFar()
    return Failure(
        kind="timeout",
        message=f"{message}; {so_far.doing}" if so_far.doing else message,
        retryable=True,
        usage=so_far.usage,
        trace=so_far.trace,
        given_up=True,
    )


def _checked(result: object) -> Answer | Failure:
    """Whatever a target returns, only an answer with a text is an answer."""
    if isinstance(result, Failure):
        return result
    if not isinstance(result, Answer) or not isinstance(result.text, str):
        what = type(result.text if isinstance(result, Answer) else result).__name__
        return Failure(kind="malformed", message=f"the target returned {what}, not a text")
    return result
