"""Is one limit for a thousand workers stable and fair? A simulation in virtual time of the very code that divides it.

    python -m benchmarks.limiter

Workers ask for shares over connections that take a while, a provider answers 429 when it gets more calls at a time than
it likes, workers come late and are lost. Reported: calls in flight against the limit, 429s, how much of what the
provider would take is used, and Jain's index of fairness (1: all workers made equally many calls).
"""

from __future__ import annotations

import asyncio
import random
import selectors
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple

from fairtrial.engine.cluster.shares import LeasedLimiter, SharedLimit
from fairtrial.engine.limits import Limiter

_DELAY = (0.005, 0.05)  # seconds that a batch takes, one way
_LINGER = 0.5  # seconds that a worker waits for more to report
_DIVIDE_EVERY = 0.2


class _Jumps(selectors.DefaultSelector):
    """Nobody waits for time to pass: it is later at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


def in_virtual_time(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a loop whose clock jumps from event to event."""
    selector = _Jumps()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


class Result(NamedTuple):
    calls: int
    most: int  # in flight at any time
    refused: float  # the share of calls that got a 429, after the first half minute
    used: float  # the share of the provider's capacity, after the first half minute
    fairness: float
    fewest: int  # calls that a worker made
    width: int  # of the limit in the end
    divide_ms: float


class Simulation:
    """A driver that divides, workers that call, and a provider that has enough at some point."""

    def __init__(
        self, workers: int, limit: int, capacity: int, seconds: float, *, late: int = 0, lost: int = 0
    ) -> None:
        self.seconds, self.capacity = seconds, capacity
        self.luck = random.Random(1)
        self.shared: SharedLimit[int] = SharedLimit(Limiter(limit))
        self.limiters: dict[int, LeasedLimiter] = {}
        self.news: dict[int, asyncio.Event] = {}
        self.calls: dict[int, int] = {}
        self.in_flight = self.most = self.refused = self.judged = 0
        self.busy_seconds = 0.0
        self.dividing: list[float] = []
        self.count, self.late, self.lost = workers, late, lost

    async def run(self) -> Result:
        tasks = [asyncio.create_task(self.divide())]
        for number in range(self.count):
            joins = self.luck.uniform(0, self.seconds / 3) if number < self.late else 0.0
            leaves = self.luck.uniform(0, self.seconds) if number >= self.count - self.lost else self.seconds
            tasks.append(asyncio.create_task(self.worker(number, joins, leaves)))
        await asyncio.sleep(self.seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        steady = [self.calls[number] for number in range(self.late, self.count - self.lost)]
        fairness = sum(steady) ** 2 / (len(steady) * sum(count * count for count in steady))
        return Result(
            sum(self.calls.values()), self.most, self.refused / max(1, self.judged),
            self.busy_seconds / (self.capacity * max(1.0, self.seconds - 30)), fairness, min(steady),
            self.shared.limiter.width, 1000 * sum(self.dividing) / len(self.dividing),
        )  # fmt: skip

    async def divide(self) -> None:
        while True:
            await asyncio.sleep(_DIVIDE_EVERY)
            started = time.process_time()
            changes = self.shared.changes()
            self.dividing.append(time.process_time() - started)
            for number, share in changes.items():
                self.send(number, share)

    def send(self, number: int, share: Any) -> None:
        """Batches of one connection stay in order."""
        asyncio.get_running_loop().call_later(_DELAY[1], lambda: self.apply(number, share))

    def apply(self, number: int, share: Any) -> None:
        if number in self.limiters:
            self.limiters[number].apply(share)

    async def worker(self, number: int, joins: float, leaves: float) -> None:
        await asyncio.sleep(joins)
        news = asyncio.Event()
        self.calls[number] = 0
        limiter = self.limiters[number] = LeasedLimiter(1000, news.set)
        callers = [asyncio.create_task(self.call_for_ever(number, limiter)) for _ in range(4)]
        reporting = asyncio.create_task(self.report(number, limiter, news))
        try:
            await asyncio.sleep(leaves - joins)
        finally:
            for task in (*callers, reporting):
                task.cancel()
            del self.limiters[number]
            self.shared.remove(number)

    async def report(self, number: int, limiter: LeasedLimiter, news: asyncio.Event) -> None:
        while True:
            await news.wait()
            await asyncio.sleep(_LINGER)
            news.clear()
            use = limiter.report()
            await asyncio.sleep(_DELAY[1])
            self.shared.update(number, use)

    async def call_for_ever(self, number: int, limiter: LeasedLimiter) -> None:
        while True:
            async with limiter:
                refused = await self.provider(number)
            if refused:
                limiter.throttled(None)
                await asyncio.sleep(self.luck.uniform(0.5, 2.0))
            else:
                limiter.succeeded()

    async def provider(self, number: int) -> bool:
        """One call; whether it got a 429."""
        steady = asyncio.get_running_loop().time() > 30
        if self.in_flight >= self.capacity:
            self.refused += steady
            self.judged += steady
            await asyncio.sleep(0.05)
            return True
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        self.calls[number] += 1
        self.judged += steady
        seconds = self.luck.lognormvariate(0.5, 0.6)
        self.busy_seconds += seconds if steady else 0.0
        try:
            await asyncio.sleep(seconds)
        finally:
            self.in_flight -= 1
        return False


SITUATIONS = {
    "1,000 workers, 400 calls at a time": {"workers": 1000, "limit": 400, "capacity": 10**6},
    "1,000 workers, 4,000 calls at a time": {"workers": 1000, "limit": 4000, "capacity": 10**6},
    "1,000 workers, 3,000 wanted, 800 accepted": {"workers": 1000, "limit": 3000, "capacity": 800},
    "the same, 300 come late and 200 are lost": {
        "workers": 1000, "limit": 3000, "capacity": 800, "late": 300, "lost": 200,
    },
}  # fmt: skip


def main() -> None:
    print("| situation | calls | most in flight | 429s | capacity used | Jain's index | fewest calls | ms to divide |")
    print("|---|---|---|---|---|---|---|---|")
    for name, situation in SITUATIONS.items():
        result: Result = in_virtual_time(Simulation(seconds=90.0, **situation).run())
        limited = situation["capacity"] < situation["limit"]
        used = (
            f"{100 * result.used:.0f} %"
            if limited
            else f"{100 * result.used * situation['capacity'] / situation['limit']:.0f} % of the limit"
        )
        print(
            f"| {name} | {result.calls:,} | {result.most:,} | {100 * result.refused:.1f} % | {used} | "
            f"{result.fairness:.3f} | {result.fewest} | {result.divide_ms:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
