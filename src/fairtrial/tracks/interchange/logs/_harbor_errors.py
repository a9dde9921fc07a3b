"""Which exceptions of a Harbor trial leave its reward valid: the agent used up what it had, or refused."""

from __future__ import annotations

from fairtrial.core.events import LimitKind

LIMITS: dict[str, LimitKind] = {
    "AgentTimeoutError": "time",
    "ContextWindowExceededError": "tokens",
    "ContextLengthExceededError": "tokens",
    "OutputTokenExceededError": "tokens",
    "OutputLengthExceededError": "tokens",
}
REFUSALS = frozenset({"AgentSafetyRefusalError", "ContentPolicyViolationError"})


def keeps_reward(kind: str) -> bool:
    """Return whether a reward measures the agent although there was this exception."""
    return kind in LIMITS or kind in REFUSALS
