"""What a limit comes to that an agent reaches: an outcome, which is scored, or a failure where the suite wants that.

Only what the agent itself used up is an outcome: its time, turns, tokens and the money set aside for its trial. The end
of the run's budget is not, nor is a session whose MCP servers did not start.
"""

from __future__ import annotations

import msgspec

from fairtrial.core.answer import Answer, Failure, Journal, Request, SoFar, Usage, limit_words
from fairtrial.core.trace import with_limit
from fairtrial.providers.prices import Price


class Allowance:
    """The amount that one agent trial may spend; `enough`: not less because the run's budget is nearly used up."""

    def __init__(self, usd: float, price: Price | None, enough: bool) -> None:
        self.usd, self._price, self._enough = usd, price, enough

    def ended(self, answer: Answer) -> bool:
        """Return whether the run's budget ended a session, which is not a limit of the agent."""
        return not self._enough and (answer.limit_value is None or answer.limit_value >= self.usd)

    def bears(self, spent: Usage, prompt_bytes: int, completion_tokens: int) -> bool:
        if self._price is None:
            return True
        return self._price.cost(spent) + self._price.most(prompt_bytes, completion_tokens) <= self.usd


def so_far_of(journal: Journal) -> SoFar:
    """Return what a call has done until now."""
    try:
        return msgspec.convert(journal.read(), SoFar)
    except Exception:  # a plug-in may do anything
        return SoFar()


def abandoned(so_far: SoFar, message: str) -> Failure:
    """Return the failure of a call that was ended from outside, with what it had done until then."""
    return Failure(
        kind="timeout",
        message=f"{message}; {so_far.doing}" if so_far.doing else message,
        retryable=True,
        usage=so_far.usage,
        trace=so_far.trace,
        given_up=True,
    )


def stopped(so_far: SoFar, seconds: float) -> Answer:
    """Return what an agent had come to when its time was over."""
    return Answer(
        text=so_far.text,
        usage=so_far.usage,
        latency_ms=seconds * 1000,
        trace=with_limit(so_far.trace, "time", seconds, so_far.doing),
        limit="time",
        limit_value=seconds,
        given_up=True,
    )


def by_its_limit(request: Request, result: Answer | Failure) -> Answer | Failure:
    """Return a failure for an answer that ended at a limit, where that is one; the run's own limit always is."""
    if isinstance(result, Failure) or result.limit is None:
        return result
    words = limit_words(result.limit, result.limit_value)
    allowance = request.allowance
    if result.limit == "money" and isinstance(allowance, Allowance) and allowance.ended(result):
        left = "reserved for this trial, which was what the run's budget had left"
        return _not_an_outcome(result, f"another call could exceed the ${allowance.usd:.2g} {left}")
    if request.on_limit == "fail":
        return _not_an_outcome(result, f"no answer: {words}")
    return msgspec.structs.replace(result, trace=with_limit(result.trace, result.limit, result.limit_value))


def _not_an_outcome(answer: Answer, message: str) -> Failure:
    return Failure(
        kind="timeout" if answer.limit == "time" else "steps",
        message=message,
        usage=answer.usage,
        cost_usd=answer.cost_usd,
        trace=answer.trace,
        changes=answer.changes,
        given_up=answer.given_up,
    )
