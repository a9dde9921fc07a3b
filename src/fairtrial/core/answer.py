"""One call: what is asked, and what comes back — an answer or a failure, both values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from fairtrial.core.experiment import McpServer
from fairtrial.core.listening import NOBODY, Listener
from fairtrial.core.money import Cost

# Kinds of failure after which asking this target anything else is pointless.
UNUSABLE = frozenset({"auth", "model"})

# Reasons for which an answer ended that make it an answer of its own kind.
REFUSED = "refusal"  # the model declined
FILTERED = "content_filter"  # the provider's filter stopped the prompt or the answer
TOOL_CALLS = "tool_calls"  # the model said nothing and asked for tools


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the provider counted them; `prompt` includes what came from the provider's cache."""

    prompt: int = 0
    completion: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Usage(**dict(zip(self.__struct_fields__, (a + b for a, b in pairs), strict=True)))


class Allowance(Protocol):
    """Money set aside for one trial of an agent."""

    usd: float

    def bears(self, spent: Usage, prompt_bytes: int, completion_tokens: int) -> bool:
        """Whether one more call of this size can be paid for, after what was spent."""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that goes with a question."""

    body: bytes
    media: str = "image/png"


class SoFar(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a call that has not ended; `doing` is what it waits for."""

    doing: str = ""
    usage: Usage | None = None
    trace: dict[str, Any] | None = None


class Journal:
    """Where a target says how its progress is read, so that what it did is kept when it is given up."""

    def __init__(self) -> None:
        self.read: Callable[[], SoFar] = SoFar


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a target."""

    trial_id: str
    case_id: str
    input: str
    system: str = ""
    mcp: tuple[McpServer, ...] = ()  # the tools that an agent is given, and no others
    params: dict[str, Any] = {}
    defaulted: tuple[str, ...] = ()  # those of them that nobody wrote down
    repeat: int = 0
    stream: bool = True
    attempt: int = 1
    schema: dict[str, Any] | None = None  # the reply must be JSON of this shape
    images: tuple[Image, ...] = ()
    allowance: Allowance | None = None  # what an agent, which makes many calls, may spend on this trial
    journal: Journal = msgspec.field(default_factory=Journal)
    listener: Listener = NOBODY  # follows the answer while it is given


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a target said. Only `text` is scored; reasoning and trace are for people.

    finish_reason: stop, length (cut off at max_tokens), refusal, content_filter, tool_calls, or a provider's own word.
    """

    text: str
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    latency_ms: float = 0.0
    first_token_ms: float | None = None
    reasoning: str | None = None
    trace: dict[str, Any] | None = None
    cost_usd: float | None = None  # where the target itself knows what it cost


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer.

    kinds: rate_limited, server, connection, files, stream, timeout, mcp (worth another try) ·
    auth, model (this target is unusable) · refused, malformed, crashed, steps (an agent did not come to an end) ·
    budget (not asked at all)
    """

    kind: str
    message: str
    retryable: bool = False
    retry_after: float | None = None
    usage: Usage | None = None
    cost_usd: float | None = None  # where the target itself knows what it cost all the same
    maybe_billed: bool = False  # the request went out, and nobody knows whether it was worked on
    trace: dict[str, Any] | None = None
    given_up: bool = False  # it was still at work: `usage` is what is known, and more may be billed


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended, after every attempt."""

    result: Answer | Failure
    attempts: int = 1
    cost: Cost = Cost()  # of every attempt
    waited_ms: float = 0.0
    tried: tuple[str, ...] = ()  # why the earlier attempts did not count
    cached: bool = False
    started_at: float = 0.0
    sent: dict[str, Any] = {}  # the parameters that went out, by the names that suites use
