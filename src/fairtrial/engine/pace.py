"""Space the calls to one model so that an account's limits are used and not exceeded.

Providers say in every reply what is left of a limit and when it is whole again. What is left is spread over that time:
this uses up a limit that starts anew every minute, and settles at the refill rate of one that refills all the time.
Where a provider says nothing, nothing is held back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from fairtrial.core.answer import Usage
from fairtrial.providers.quota import Quota, RateLimit

_FIRST_CALLS = 8  # in flight before anything is known about limits: a large concurrency must not begin with a storm
_SLOWEST = 3.0  # never slower than a third of a limit's own rate: a limit that refills would stand still
_LOW = 0.2  # where nobody says when a limit is whole again: be careful when less than this is left
_MINUTE = 60.0
_WEIGHT = 0.1  # of the latest answer in the mean length of answers


class Size(NamedTuple):
    """How many tokens a call will use, at a guess."""

    prompt: float
    longest: float  # of the answer


class Pace:
    """The pace of the calls to one model, shared by all who ask it."""

    def __init__(self) -> None:
        self._sources: list[Callable[[], Quota | None]] = []
        self._turnstile = asyncio.Lock()
        self._answered = asyncio.Event()
        self._in_flight = 0
        self._next = float("-inf")  # when the next call may begin
        self._read: Quota | None = None  # the latest that a provider said
        self._since: list[Size] = []  # calls that began after that
        self._completion: float | None = None  # tokens of an answer, on average
        self._gap, self._limit = 0.0, ""

    def listen(self, source: Callable[[], Quota | None]) -> None:
        """Add a source of what the provider said last."""
        self._sources.append(source)

    def call(self, measure: Callable[[], Size]) -> PacedCall:
        """Return a context that waits for the time of a call, in which it is made."""
        return PacedCall(self, measure)

    async def begin(self, measure: Callable[[], Size]) -> None:
        """Wait for the time of a call."""
        if self._sources:
            await self._wait(measure)
        self._in_flight += 1

    def end(self) -> None:
        """Note that a call is over."""
        self._in_flight -= 1
        self._answered.set()

    async def _wait(self, measure: Callable[[], Size]) -> None:
        while not self._answered.is_set() and self._in_flight >= _FIRST_CALLS:
            await self._answered.wait()
        if self._latest() is None:
            return
        async with self._turnstile:  # one after the other, so that each is timed by what is known then
            loop = asyncio.get_running_loop()
            if self._next > loop.time():
                await asyncio.sleep(self._next - loop.time())
            size = measure()
            self._gap = self._time_for(size)
            self._since.append(size)
            self._next = loop.time() + self._gap

    def used(self, usage: Usage | None) -> None:
        """Note how long an answer was."""
        if usage is not None:
            mean = usage.completion if self._completion is None else self._completion
            self._completion = (1 - _WEIGHT) * mean + _WEIGHT * usage.completion

    def held(self) -> str:
        """Say what holds calls back at the moment."""
        if not self._turnstile.locked() or self._gap <= 0:
            return ""
        return f"takes {_MINUTE / self._gap:.0f} calls a minute: the account's limit of {self._limit}"

    def _latest(self) -> Quota | None:
        latest: Quota | None = None
        for source in self._sources:
            quota = source()
            if quota is not None and (latest is None or quota.at > latest.at):
                latest = quota
        if latest is not self._read:
            self._read, self._since = latest, []
        return latest

    def _time_for(self, size: Size) -> float:
        """Return the seconds until the call after this one: the longest that any limit asks for."""
        quota = self._latest()
        if quota is None:
            return 0.0
        whole = size.prompt + self._answer(quota, size)
        needs = (
            (quota.requests, 1.0, float(len(self._since)), "requests"),
            (quota.tokens, whole, sum(call.prompt + self._answer(quota, call) for call in self._since), "tokens"),
            (quota.input, size.prompt, sum(call.prompt for call in self._since), "tokens read"),
            (quota.output, self._answer(quota, size), 0.0, "tokens written"),
        )
        age = asyncio.get_running_loop().time() - quota.at
        gaps = [(_gap(limit, need, begun, age), limit, what) for limit, need, begun, what in needs if limit]
        longest, limit, what = max(gaps, key=lambda gap: gap[0], default=(0.0, None, ""))
        if limit:
            self._limit = f"{limit.limit:,.0f} {what} a minute"
        return longest

    def _answer(self, quota: Quota, size: Size) -> float:
        known = size.longest if self._completion is None else self._completion
        return size.longest if quota.reserves else known


class PacedCall:
    """One call, made when its time has come."""

    def __init__(self, pace: Pace, measure: Callable[[], Size]) -> None:
        self._pace, self._measure = pace, measure

    async def __aenter__(self) -> None:
        await self._pace.begin(self._measure)

    async def __aexit__(self, *_: object) -> None:
        self._pace.end()


def _gap(limit: RateLimit, need: float, begun: float, age: float) -> float:
    """Return the seconds that a call takes from a limit, `begun` of which is spoken for since it was reported."""
    left = max(limit.left - begun, 1e-9)
    if limit.reset is None:
        usual = need * _MINUTE / limit.limit
        return min(usual * max(1.0, _LOW * limit.limit / left), usual * _SLOWEST)
    period = max(_MINUTE, limit.reset)
    return min(need * max(limit.reset - age, 0.0) / left, need * period / limit.limit * _SLOWEST)
