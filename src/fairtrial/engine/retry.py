"""Decide whether and when a call is retried. Pure logic: the ladder makes the calls."""

from __future__ import annotations

import random

from fairtrial.core.answer import FILTERED, REFUSED, TOOL_CALLS, Answer, Failure
from fairtrial.core.settings import RetrySpec

# An answer that is empty for one of these reasons would be empty again on a retry.
_EMPTY_FOR_A_REASON = frozenset({"length", REFUSED, FILTERED, TOOL_CALLS})


class Retries:
    """The remaining retries of one call."""

    def __init__(self, spec: RetrySpec, *, agent: bool = False) -> None:
        self._spec = spec
        self._max_timeouts = (0 if agent else 1) if spec.timeouts is None else spec.timeouts
        self._failures = self._empties = self._timeouts = 0

    def wait(self, result: Answer | Failure) -> float | None:
        """Return the seconds until the next attempt, or None if this result is final."""
        if isinstance(result, Answer):
            return self._after_answer(result)
        if not result.retryable or not self._may_retry(result.kind):
            return None
        if result.kind == "stream" and self._failures == 1:
            return 0.0  # retried immediately, without streaming
        if result.retry_after is not None:
            return min(result.retry_after, self._spec.max_wait)
        longest = min(self._spec.max_wait, self._spec.wait * 2.0 ** (self._failures - 1))
        return longest * (0.5 + random.random() / 2)

    def _may_retry(self, kind: str) -> bool:
        self._failures += 1
        self._timeouts += kind == "timeout"
        return self._failures < self._spec.attempts and self._timeouts <= self._max_timeouts

    def _after_answer(self, answer: Answer) -> float | None:
        if answer.text.strip() or answer.limit or answer.finish_reason in _EMPTY_FOR_A_REASON:
            return None
        if self._empties >= self._spec.empty:
            return None  # an answer that stays empty is accepted as the answer
        self._empties += 1
        return self._spec.empty_wait * self._empties
