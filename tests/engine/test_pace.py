"""An account's limits are used and not exceeded, in the time of a clock that only the test moves."""

import asyncio
import selectors

import pytest

from fairtrial.core.answer import Answer, Failure, Request, Usage
from fairtrial.core.experiment import DEFAULT_PARAMS, TargetSpec
from fairtrial.core.settings import Settings
from fairtrial.core.target import Options, Target
from fairtrial.engine.budget import Budget
from fairtrial.engine.ladder import Ladder
from fairtrial.engine.limits import Limiter
from fairtrial.engine.pace import Pace
from fairtrial.providers.prices import FREE
from fairtrial.providers.quota import Quota, RateLimit

MINUTES = 10.0


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes at once when everybody waits."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._now

    def skip(self, seconds: float) -> None:
        self._now += seconds


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout=None):
        if timeout:
            self._loop.skip(timeout)
        return super().select(0)


class Bucket:
    """A limit that refills all the time, or starts anew every minute."""

    def __init__(self, limit: float, *, windows: bool, told: bool = True) -> None:
        self.limit, self.left, self.windows, self.told = limit, limit, windows, told
        self.at, self.used = 0.0, 0.0

    def refill(self, now: float) -> None:
        if self.windows:
            self.left = self.limit if now // 60 > self.at // 60 else self.left
        else:
            self.left = min(self.limit, self.left + (now - self.at) * self.limit / 60)
        self.at = now

    def take(self, need: float) -> None:
        self.left -= need
        self.used += need if self.at <= MINUTES * 60 else 0  # what is waiting then still comes

    def allowance(self) -> RateLimit:
        reset = 60 - self.at % 60 if self.windows else (self.limit - self.left) * 60 / self.limit
        return RateLimit(self.limit, max(0.0, self.left), reset if self.told else None)


class Account(Target):
    """A model behind an account with limits; latency varies, and answers are shorter than they might be."""

    tells_limits = True

    def __init__(self, requests: Bucket, tokens: Bucket, *, reserves: bool, answer: int) -> None:
        super().__init__(TargetSpec(id="x", kind="x", provider="x", model="m"), Options(), None)
        self.requests, self.tokens, self.reserves, self.answer = requests, tokens, reserves, answer
        self.calls = self.refused = 0

    async def ask(self, request: Request) -> Answer | Failure:
        loop = asyncio.get_running_loop()
        self.calls += 1
        need = 100 + (request.params["max_tokens"] if self.reserves else self.answer)
        for bucket in (self.requests, self.tokens):
            bucket.refill(loop.time())
        refused = self.requests.left < 1 or self.tokens.left < need
        if refused:
            self.refused += 1
        else:
            self.requests.take(1)
            self.tokens.take(need)
        self.quota = Quota(
            requests=self.requests.allowance(), tokens=self.tokens.allowance(), reserves=self.reserves, at=loop.time()
        )
        await asyncio.sleep(0.1 if refused else 1 + self.calls % 7 / 2)
        if refused:
            return Failure(kind="rate_limited", message="slow down", retryable=True, retry_after=2.0)
        return Answer(text="ok", usage=Usage(prompt=100, completion=self.answer))


async def _use(account: Account, minutes: float, workers: int) -> list[str]:
    settings = Settings(concurrency=workers)
    pace, held = Pace(), []
    ladder = Ladder(
        account, settings, gate=asyncio.Semaphore(workers), limiter=Limiter(workers), pace=pace,
        budget=Budget(None), price=FREE,
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    params = {**DEFAULT_PARAMS, "max_tokens": 400}

    async def work() -> None:
        while loop.time() < minutes * 60:
            await ladder.ask(Request(trial_id="t", case_id="c", input="x" * 400, params=params))
            held.append(pace.held())

    await asyncio.gather(*(work() for _ in range(workers)))
    return held


ACCOUNTS = {
    "tokens are the limit": (False, True, False, 200),
    "requests are the limit": (False, True, False, 5),
    "what might be written is reserved": (False, True, True, 200),
    "a new minute begins": (True, True, False, 200),
    "nobody says when a minute begins": (True, False, False, 200),
}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [40, 200])
@pytest.mark.parametrize("name", ACCOUNTS)
def test_an_account_is_used_and_not_exceeded(name, workers):
    windows, told, reserves, answer = ACCOUNTS[name]
    small = answer < 50
    requests = Bucket(500, windows=windows, told=told)
    tokens = Bucket(300_000 if small else 30_000, windows=windows, told=told)
    account = Account(requests, tokens, reserves=reserves, answer=answer)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        held = runner.run(_use(account, MINUTES, workers))
    share = max(requests.used / (500 * MINUTES), tokens.used / (tokens.limit * MINUTES))
    print(f"{name}: {share:.1%} used, {account.refused} of {account.calls} calls refused")
    assert share >= 0.9 and account.refused < 0.01 * account.calls
    unit = "500 requests" if small else "30,000 tokens"
    assert any(f"limit of {unit} a minute" in line for line in held)


@pytest.mark.slow
def test_where_nobody_speaks_of_limits_nothing_is_held_back():
    class Plain(Account):
        async def ask(self, request: Request) -> Answer | Failure:
            self.calls += 1
            await asyncio.sleep(1)
            return Answer(text="ok")

    account = Plain(Bucket(1, windows=False), Bucket(1, windows=False), reserves=False, answer=1)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        held = runner.run(_use(account, 1.0, 100))
    assert account.calls >= 100 * 59 and not any(held)


@pytest.mark.slow
def test_the_calls_of_an_agent_are_spaced_like_those_of_its_model():
    class Agent(Account):
        """Four calls in every trial, each at its turnstile."""

        many_calls = True

        async def ask(self, request: Request) -> Answer | Failure:
            for _ in range(4):
                async with request.turnstile.call(400, 400):
                    result = await super().ask(request)
                request.turnstile.used(result.usage)
                if isinstance(result, Failure):
                    return result
            return result

    requests, tokens = Bucket(500, windows=False), Bucket(30_000, windows=False)
    account = Agent(requests, tokens, reserves=False, answer=200)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        held = runner.run(_use(account, MINUTES, 40))
    assert tokens.used >= 0.9 * 30_000 * MINUTES and account.refused < 0.01 * account.calls
    assert any("limit of 30,000 tokens a minute" in line for line in held)
