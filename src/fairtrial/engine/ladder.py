"""The steps of one call (its "ladder"), each with a single concern:

    cached → retried → afforded → limited → placed → timed → called

Waiting happens in `retried`, above `limited`, so that a waiting call does not occupy a slot. Latency is measured by the
target itself, at the bottom, so that waiting never counts as latency.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from typing import Protocol

import msgspec

from fairtrial.agents.workspace.making import WorkspaceError, Workspaces, kept_name
from fairtrial.core.answer import (
    LIMITS,
    NOT_STORED,
    Answer,
    Failure,
    Outcome,
    Request,
    SoFar,
)
from fairtrial.core.money import UNKNOWN_USD, Cost
from fairtrial.core.settings import AGENT_TIMEOUT, MODEL_TIMEOUT, PriceSpec, Settings
from fairtrial.core.target import Target
from fairtrial.core.time_limit import time_limit
from fairtrial.core.trace import with_changes
from fairtrial.engine.agent_limits import Allowance, abandoned, by_its_limit, so_far_of, stopped
from fairtrial.engine.budget import Need
from fairtrial.engine.cancelling import raise_if_cancelled, to_the_end
from fairtrial.engine.limits import Limiter
from fairtrial.engine.pace import Pace, Size
from fairtrial.engine.retry import Retries
from fairtrial.providers.bounds import Most, believed, is_bounded, longest_reply, maybe_billed, most_tokens, most_usd
from fairtrial.providers.prices import FREE, Price, price_of_target

Gate = AbstractAsyncContextManager[None]


class Purse(Protocol):
    """Where a ladder takes its money from: the run's budget, or what a worker has been lent of it."""

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""

    async def reserve(self, need: Need) -> float | None:
        """Reserve the maximum cost of a call and return it, or None when the budget is too small."""

    def settle(self, reserved: float, cost: Cost) -> None:
        """Replace a call's reservation by its actual cost."""

    def usual(self, need: Need) -> float:
        """Return what calls like this one are given where the budget is large enough; infinite if that is not known."""

    def note_cost(self, target: str, usd: float) -> None:
        """Note what a call to a target has cost."""


Lookup = Callable[[str], Awaitable[Answer | None]]
_CHARACTERS_OF_TOKEN, _TOKENS_OF_ANSWER, _TOKENS_OF_FILE = 4, 1000, 5000  # roughly, where only the pace depends on it
_ROUNDING = 1 + 1e-9
_AGENT_COST_FACTOR = 4.0  # an agent's trial may cost this many times the most expensive one so far
_DEFAULT_COMPLETION_TOKENS = 200_000  # completion tokens to reserve if the request sets no limit


class Ladder:
    """Makes the calls to one target."""

    def __init__(
        self,
        target: Target,
        settings: Settings,
        *,
        gate: Gate,
        limiter: Limiter,
        pace: Pace | None = None,
        budget: Purse,
        price: Price | Awaitable[Price | None],
        lookup: Lookup | None = None,
        room: Gate | None = None,
        workspaces: Workspaces | None = None,
    ) -> None:
        """`room` is what calls to the target take of the machine."""
        self._target, self._settings = target, settings
        self._room: Gate = room or nullcontext()
        self._gate, self._limiter, self._budget = gate, limiter, budget
        self._lookup, self._workspaces = lookup, workspaces
        self._pace = pace or Pace()
        if target.tells_limits:
            self._pace.listen(lambda: target.quota)
        # The price list takes half a second to load; the first calls can be made meanwhile.
        self._price: Price | None = price if isinstance(price, Price) else None
        self._pending_price = None if isinstance(price, Price) else price

    async def ask(self, request: Request) -> Outcome:
        """cached: reuse the answer if an earlier run asked exactly the same."""
        if self._lookup is not None:
            answer = await self._lookup(request.trial_id)
            if answer is not None and self._may_reuse(answer, request):
                return Outcome(result=answer, cached=True, attempts=0, started_at=time.time())
        if self._settings.replay:
            failure = Failure(kind=NOT_STORED, message="no answer is stored, and with --replay nothing is asked")
            return Outcome(result=failure, attempts=0, started_at=time.time())
        return await self._retried(request)

    def _may_reuse(self, answer: Answer, request: Request) -> bool:
        """Return whether an answer that ended at a limit would end there again: other limits are part of a trial."""
        if answer.limit is None:
            return True
        same = answer.limit == "time" and answer.limit_value == self._time_limit
        return request.on_limit != "fail" and (same or answer.limit in ("turns", "tokens"))

    @property
    def _time_limit(self) -> float:
        return self._settings.timeout or (AGENT_TIMEOUT if self._target.agent else MODEL_TIMEOUT)

    async def _retried(self, request: Request) -> Outcome:
        """retried: try again as often as the retry settings allow, adding up the cost of every attempt."""
        retries = Retries(self._settings.retry, agent=self._target.agent)
        tried: list[str] = []
        last: Answer | Failure | None = None
        cost = Cost()
        waited = 0.0
        while True:
            started = time.time()
            result, price = await self._afforded(request)
            cost += price
            over_budget = isinstance(result, Failure) and result.kind == "budget"
            wait = None if over_budget else retries.wait(result)
            if wait is None:
                return Outcome(
                    # If the budget runs out between two attempts, keep the earlier attempt's result and its cost.
                    result=last if over_budget and last is not None else result,
                    attempts=request.attempt - (over_budget and last is not None),
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
            raise_if_cancelled()
            await asyncio.sleep(wait)

    async def _afforded(self, request: Request) -> tuple[Answer | Failure, Cost]:
        """afforded: reserve the maximum cost first, then replace it by the actual cost."""
        raise_if_cancelled()
        if self._budget.limited or self._target.agent:
            await self._load_price()
        need = self._need(request)
        reserved = await self._budget.reserve(need)
        if reserved is None:
            return Failure(kind="budget", message="budget reached: another call could exceed it"), Cost()
        cost, attempt = Cost(), _Attempt()
        if self._target.many_calls and self._budget.limited:
            enough = reserved >= self._budget.usual(need)
            request = msgspec.structs.replace(request, allowance=Allowance(reserved, self._price, enough))
        try:
            result = await self._limited(request, attempt)
            if self._pending_price is not None:
                await to_the_end(self._load_price())  # the answer has been paid for: it must be stored
            result, cost = self._settled(request, result, reserved)
            return by_its_limit(request, result), cost
        except asyncio.CancelledError:
            if attempt.begun and self._price is not FREE:  # a cancelled call may still be billed
                _, cost = self._settled(request, abandoned(so_far_of(request.journal), "cancelled"), reserved)
            raise
        finally:
            self._budget.settle(reserved, cost)

    async def _load_price(self) -> None:
        if self._pending_price is not None:
            self._price = await asyncio.shield(self._pending_price)  # other calls wait for it too
            self._pending_price = None

    def _need(self, request: Request) -> Need:
        """Return the amount to reserve for a call: the maximum it can cost."""
        if not self._budget.limited:  # only what can cost much is on record before it begins
            is_session = self._target.agent and self._price is not FREE
            return Need(target=self._target.spec.id, factor=_AGENT_COST_FACTOR) if is_session else Need()
        if self._price is FREE and not self._target.names_its_cost:
            return Need()
        if self._target.many_calls:  # it is told what it may spend, and must stop there
            return Need(target=self._target.spec.id, factor=_AGENT_COST_FACTOR, capped=True)
        if self._target.names_its_cost:  # it reports its cost only afterwards
            return Need(target=self._target.spec.id)
        return Need(self._most_usd(self._most(request), _DEFAULT_COMPLETION_TOKENS) or 0.0)

    def _most(self, request: Request) -> Most | None:
        """Return the most tokens that a trial can use, or None if what is sent says nothing about that."""
        if not is_bounded(self._target):
            return None
        return most_tokens(self._target.spec, request, self._target.sent(request))

    def _most_usd(self, most: Most | None, unlimited: int | None = None) -> float | None:
        """Return the maximum cost of a call, or None if there is no upper bound; see `most_usd`."""
        return None if self._price is None or most is None else most_usd(self._price, most, unlimited)

    def _settled(self, request: Request, result: Answer | Failure, reserved: float) -> tuple[Answer | Failure, Cost]:
        """Return the result of an attempt, without token counts that cannot be true, and its cost."""
        most = self._most(request)
        result = believed(result, most, embeds=request.embed)
        return result, self._cost(result, most, reserved)

    def _cost(self, result: Answer | Failure, most: Most | None, reserved: float) -> Cost:
        known = self._known_cost(result, most)
        if known is None:
            return self._worst_case_cost(most, reserved)
        if result.given_up and self._price is not FREE:
            return Cost(known=known, charged=max(known, self._worst_case_cost(most, reserved).charged), unknown=1)
        self._budget.note_cost(self._target.spec.id, known)
        return Cost(known=known, charged=known)

    def _worst_case_cost(self, most: Most | None, reserved: float) -> Cost:
        if not self._budget.limited and most is not None:
            reserved = self._most_usd(most, _DEFAULT_COMPLETION_TOKENS) or 0.0
        return Cost(charged=0.0 if reserved == UNKNOWN_USD else reserved, unknown=1)

    def _known_cost(self, result: Answer | Failure, most: Most | None) -> float | None:
        """Return the cost if it is known; what a server says to have charged must be possible."""
        cost = result.cost_usd
        if cost is None:
            return self._cost_of_tokens(result)
        told = self._target.names_its_cost or self._price is None  # it is the only one to know
        if self._price is FREE and not told:
            return 0.0
        limit = self._most_usd(most)
        if not math.isfinite(cost) or cost < 0 or (limit is not None and cost > limit * _ROUNDING):
            return None
        return cost if cost or told else None  # a model that has a price does not work for nothing

    def _cost_of_tokens(self, result: Answer | Failure) -> float | None:
        if self._price is FREE:
            return 0.0
        if result.usage is None:
            return None if isinstance(result, Answer) or maybe_billed(result) else 0.0
        if self._price is None:
            return None
        turns = (result.trace or {}).get("turns") if self._target.agent else None
        return self._price.cost(result.usage, turns or 1)

    async def _limited(self, request: Request, attempt: _Attempt) -> Answer | Failure:
        """limited: respect the limits of the account, the concurrency of lane and run, and what the machine has."""
        pace: Gate = nullcontext()
        if self._target.many_calls:  # each of its calls has its own time
            request = msgspec.structs.replace(request, turnstile=_Turnstile(self._pace))
        else:
            pace = self._pace.call(lambda: self._size(request))
        async with pace, self._limiter, self._gate, self._room:
            attempt.begun = True
            result = await self._placed(request)
        if not self._target.many_calls:
            self._pace.used(result.usage)
        if isinstance(result, Answer):
            self._limiter.succeeded()
        elif result.kind in ("rate_limited", "files"):
            self._limiter.throttled(result.retry_after)
        return result

    def _size(self, request: Request) -> Size:
        """Guess how many tokens a call will use, as providers do before they know."""
        texts = (request.system, request.input, *(message.content for message in request.history))
        prompt = sum(map(len, texts)) / _CHARACTERS_OF_TOKEN + _TOKENS_OF_FILE * len(request.files)
        return Size(prompt, longest_reply(self._target.sent(request)) or _TOKENS_OF_ANSWER)

    async def _placed(self, request: Request) -> Answer | Failure:
        """placed: give an agent a fresh workspace, and add to its answer what it changed there."""
        spec = self._target.workspace_of(request.works_in)
        if spec is None or self._workspaces is None:
            return await self._doubled(request)
        result: Answer | Failure | None = None
        complete = False
        name = kept_name(request.case_id, request.trial_id)
        try:
            async with self._workspaces.make(
                spec, request.changes, hosts=self._target.model_hosts(), keep_as=name
            ) as workspace:
                servers = workspace.servers(request.mcp)
                result = await self._doubled(msgspec.structs.replace(request, workspace=workspace, mcp=servers))
                changes, shown = await to_the_end(workspace.changes())
                trace = with_changes(result.trace, shown) if request.works_in or shown["diff"] else result.trace
                result, complete = msgspec.structs.replace(result, changes=changes, trace=trace), True
        except asyncio.CancelledError:
            if not complete:
                raise
        except WorkspaceError as error:
            if result is None:
                return Failure(kind="workspace", message=str(error))
            spent = {"usage": result.usage, "cost_usd": result.cost_usd, "trace": result.trace}
            earlier = f"{result.message}; " if isinstance(result, Failure) else ""
            return Failure(kind="workspace", message=f"{earlier}{error}", **spent)  # type: ignore[arg-type]
        assert result is not None
        return result  # even if the run was cancelled while the folder was removed: it has been paid for

    async def _doubled(self, request: Request) -> Answer | Failure:
        """doubled: let recordings and mocks stand in for MCP servers, and say in the trace what came from them."""
        return await (request.doubled(request, self._timed) if request.doubled else self._timed(request))

    async def _timed(self, request: Request) -> Answer | Failure:
        """timed: stop a call that exceeds the time limit."""
        limit = self._time_limit
        request.journal.read = SoFar  # of an earlier attempt
        clock = time_limit(limit)
        if isinstance(request.turnstile, _Turnstile):
            request.turnstile.clock = clock
        try:
            async with clock:
                return await self._called(request)
        except TimeoutError:
            so_far = so_far_of(request.journal)
            if self._target.agent and so_far.ready and request.on_limit != "fail":
                return stopped(so_far, limit)
            return abandoned(so_far, f"no answer within {limit:g} s")

    async def _called(self, request: Request) -> Answer | Failure:
        """called: an exception in a target is a failure of this call, not of the run."""
        try:
            request.listener.begin()
            return _validated(await self._target.ask(request))
        except (Exception, SystemExit) as error:  # a plug-in may do anything
            return Failure(kind="crashed", message=f"the target raised {type(error).__name__}: {error}")


def price_of(target: Target, prices: Mapping[str, PriceSpec]) -> Price | Awaitable[Price | None]:
    """Return the price of a target's calls; if the price list has to be read, that happens in a thread."""
    if not target.priced and (price := price_of_target(target, target.spec, prices)):
        return price
    return asyncio.ensure_future(asyncio.to_thread(price_of_target, target, target.spec, prices))


class _Attempt:
    """One attempt at a call; once it has `begun`, it may cost something."""

    begun = False


class _Turnstile:
    """Spaces the calls of an agent like those of its model."""

    def __init__(self, pace: Pace) -> None:
        self._pace, self.used = pace, pace.used
        self.clock: time_limit | None = None  # of the session: it does not count the time waited here

    @asynccontextmanager
    async def call(self, prompt_bytes: int, completion_tokens: int) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            with self.clock.paused() if self.clock else nullcontext():
                size = Size(prompt_bytes / _CHARACTERS_OF_TOKEN, completion_tokens)
                await stack.enter_async_context(self._pace.call(lambda: size))
            yield


def _validated(result: object) -> Answer | Failure:
    """Accept only an answer with text, whatever else a target returns."""
    if isinstance(result, Failure):
        return result
    if not isinstance(result, Answer) or not isinstance(result.text, str):
        returned = type(result.text if isinstance(result, Answer) else result).__name__
        return Failure(kind="malformed", message=f"the target returned {returned} instead of text")
    if result.limit is not None and result.limit not in LIMITS:
        return Failure(kind="malformed", message=f"the target returned a limit other than {', '.join(LIMITS)}")
    return result
