"""The ladder of one call, one concern a rung:

    cached → retried → afforded → limited → timed → called

Waiting happens on `retried`, above `limited`, so that a call that waits holds nobody's place; latency is measured
by the target itself, below everything, so that waiting never counts as latency.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from fairtrial.core.answer import Answer, Failure, Journal, Outcome, Request, SoFar, Usage
from fairtrial.core.experiment import PriceSpec, Settings
from fairtrial.core.money import Cost
from fairtrial.core.target import Target
from fairtrial.engine.budget import Budget
from fairtrial.engine.limits import Limiter
from fairtrial.engine.retry import Retries
from fairtrial.providers.prices import FREE, Price, find_price

Gate = AbstractAsyncContextManager[None]
Lookup = Callable[[str], Awaitable[Answer | None]]
_MAYBE_BILLED = frozenset({"stream", "timeout", "malformed", "crashed"})
_MOST_TOKENS = 10**12  # more than any call can take
_TOKENS_OF_IMAGE = 5000  # more than any provider counts for a screenshot
_TOKENS_OF_SCHEMA = 1000  # what a provider writes around a shape that it is asked for
_TOKENS_AROUND = 64  # what a chat template adds to a prompt, at most
_ROOM = 4.0  # an agent's trial may cost so many times the dearest one so far
_TIMEOUT, _AGENT_TIMEOUT = 120.0, 600.0  # seconds, where the suite says nothing
_LONGEST_UNSAID = 200_000  # completion tokens to set aside where nobody said how many
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


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
                return Outcome(result=answer, cached=True, attempts=0, started_at=time.time())
        return await self._retried(request)

    async def _retried(self, request: Request) -> Outcome:
        """retried: as often as patience lasts, counting what every attempt cost."""
        patience = Retries(self._settings.retry, agent=self._target.agent)
        tried: list[str] = []
        last: Answer | Failure | None = None
        cost = Cost()
        waited = 0.0
        while True:
            started = time.time()
            result, price = await self._afforded(request)
            cost += price
            unpaid = isinstance(result, Failure) and result.kind == "budget"
            wait = None if unpaid else patience.wait(result)
            if wait is None:
                return Outcome(
                    # When the money ends between two attempts, the earlier one stands, with what it cost.
                    result=last if unpaid and last is not None else result,
                    attempts=request.attempt - (unpaid and last is not None),
                    cost=cost,
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

    async def _afforded(self, request: Request) -> tuple[Answer | Failure, Cost]:
        """afforded: the dearest outcome is set aside first, then replaced by the real one."""
        if self._budget.limited:
            await self._know_price()
        reserved = await self._budget.reserve(lambda: self._reservation(request))
        if reserved is None:
            return Failure(kind="budget", message="the budget is reached: another call could exceed it"), Cost()
        cost, attempt = Cost(), _Attempt()
        if self._target.many_calls and self._budget.limited:
            request = msgspec.structs.replace(request, allowance=_Allowance(reserved, self._price))
        try:
            result = await self._limited(request, attempt)
            await self._know_price()
            cost = self._cost(request, result, reserved)
            return result, cost
        except asyncio.CancelledError:
            if attempt.begun and self._price is not FREE:  # given up in the middle, it may be billed all the same
                cost = self._worst(request, reserved)
            raise
        finally:
            self._budget.settle(reserved, cost)

    async def _know_price(self) -> None:
        if self._pricing is not None:
            self._price = await self._pricing
            self._pricing = None

    def _reservation(self, request: Request) -> float:
        """What to set aside for a call: the most that it can cost."""
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
        most = self._most(request)
        return most if most is not None else self._price.most(0, _LONGEST_UNSAID) if self._price else 0.0

    def _most(self, request: Request) -> float | None:
        """The most that a single call can cost by its price; None where there is no such bound."""
        if self._price is None or self._target.many_calls or self._target.names_its_cost:
            return None
        if self._price is FREE:
            return 0.0
        sent = self._target.sent(request)
        longest = _longest_reply(sent)
        if longest is None:
            return None
        # No tokenizer makes more tokens than the text has bytes.
        prompt = len(request.system.encode()) + len(request.input.encode()) + _TOKENS_AROUND
        prompt += _TOKENS_OF_IMAGE * len(request.images)
        if request.schema is not None:
            prompt += len(msgspec.json.encode(request.schema)) + _TOKENS_OF_SCHEMA
        return self._price.most(prompt, longest)

    def _cost(self, request: Request, result: Answer | Failure, reserved: float) -> Cost:
        """What an attempt cost; where nobody can say, the worst is charged."""
        known = self._known_cost(result, self._most(request))
        if known is None:
            return self._worst(request, reserved)
        if isinstance(result, Failure) and result.given_up and self._price is not FREE:
            return Cost(known=known, charged=max(known, self._worst(request, reserved).charged), unknown=1)
        self._dearest = max(self._dearest or 0.0, known)
        return Cost(known=known, charged=known)

    def _worst(self, request: Request, reserved: float) -> Cost:
        """The cost of a call of which nobody knows it."""
        return Cost(charged=reserved if self._budget.limited else self._most(request) or 0.0, unknown=1)

    def _known_cost(self, result: Answer | Failure, most: float | None) -> float | None:
        """What is known; nothing that a server says makes it negative, or more than the call can have cost."""
        told = result.cost_usd
        if told is None:
            if self._price is FREE:
                return 0.0
            if result.usage is None:
                return None if isinstance(result, Answer) or _maybe_billed(result) else 0.0
            if self._price is None or not _credible(result.usage):
                return None
            told = self._price.cost(result.usage)
        if not (math.isfinite(told) and told >= 0):
            return None
        return told if most is None else min(told, most)

    async def _limited(self, request: Request, attempt: _Attempt) -> Answer | Failure:
        """limited: within the lane's width, and within the run's."""
        async with self._limiter, self._gate:
            attempt.begun = True
            result = await self._timed(request)
        if isinstance(result, Answer):
            self._limiter.succeeded()
        elif result.kind in ("rate_limited", "files"):
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
            request.listener.begin()
            return _checked(await self._target.ask(request))
        except (Exception, SystemExit) as error:  # a plug-in may do anything
            return Failure(kind="crashed", message=f"the target raised {type(error).__name__}: {error}")


def price_of(target: Target, prices: Mapping[str, PriceSpec]) -> Price | Awaitable[Price | None]:
    """What a target's calls cost; where the list of prices must be read, it is read in a thread."""
    if not target.priced:
        return FREE
    return asyncio.ensure_future(asyncio.to_thread(find_price, target.spec, prices))


class _Attempt:
    """One attempt at a call: whether it has begun, and so may cost something."""

    begun = False


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


def _longest_reply(sent: dict[str, Any]) -> int | None:
    """The most completion tokens that a request allows, `extra` included; None where it sets no limit."""
    extra = sent.get("extra") or {}
    limits = [value for value in (sent.get("max_tokens"), *map(extra.get, _LIMITS)) if isinstance(value, int)]
    replies = extra.get("n") if isinstance(extra.get("n"), int) else 1
    return max(limits) * max(1, replies or 1) if limits else None


def _maybe_billed(failure: Failure) -> bool:
    """Whether somebody may have worked on the call, and written a bill, though nothing came of it."""
    return failure.maybe_billed or failure.kind in _MAYBE_BILLED


def _credible(usage: Usage) -> bool:
    """Whether these can be numbers of tokens."""
    return all(0 <= count <= _MOST_TOKENS for count in msgspec.structs.astuple(usage)) and (
        usage.cache_read + usage.cache_write <= usage.prompt
    )


def _checked(result: object) -> Answer | Failure:
    """Whatever a target returns, only an answer with a text is an answer."""
    if isinstance(result, Failure):
        return result
    if not isinstance(result, Answer) or not isinstance(result.text, str):
        what = type(result.text if isinstance(result, Answer) else result).__name__
        return Failure(kind="malformed", message=f"the target returned {what}, not a text")
    return result
