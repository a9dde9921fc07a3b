"""One call to a target: the request, and its result, which is an answer or a failure. All are plain values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, get_args

import msgspec

from fairtrial.core.batch import BatchPlace
from fairtrial.core.chat import Message
from fairtrial.core.events import Event, LimitKind, OnLimit
from fairtrial.core.experiment import McpServer
from fairtrial.core.file import File
from fairtrial.core.listening import NOBODY, Listener
from fairtrial.core.money import Cost
from fairtrial.core.types_in_threads import look_into
from fairtrial.core.workspace import Workspace, WorkspaceSpec

# Kinds of failure after which no other call to this target can succeed.
UNUSABLE = frozenset({"auth", "model"})

# The kind of failure of a request that goes on at its provider: it is left to the next session.
PENDING = "pending"

# The kind of failure where only stored answers are used, and there is none.
NOT_STORED = "not_stored"

# Finish reasons that need special handling.
REFUSED = "refusal"  # the model declined
FILTERED = "content_filter"  # the provider's filter stopped the prompt or the answer
TOOL_CALLS = "tool_calls"  # the model returned tool calls and no text


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts reported by the provider; `prompt` includes tokens read from the provider's cache."""

    prompt: int = 0
    completion: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cache_write_1h: int = 0  # of `cache_write`: what is kept for an hour, at a price of its own

    def __add__(self, other: Usage) -> Usage:
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Usage(**dict(zip(self.__struct_fields__, (a + b for a, b in pairs), strict=True)))


class Allowance(Protocol):
    """Money set aside for one trial of an agent."""

    usd: float

    def bears(self, spent: Usage, prompt_bytes: int, completion_tokens: int) -> bool:
        """Return whether the allowance covers one more call of this size, given what was already spent."""


class Turnstile(Protocol):
    """Spaces the calls of an agent by the limits of its model's account."""

    def call(self, prompt_bytes: int, completion_tokens: int) -> AbstractAsyncContextManager[None]:
        """Return a context that waits for the time of a call of this size."""

    def used(self, usage: Usage | None) -> None:
        """Note how long an answer was."""


class SoFar(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a call that has not ended; `doing` says what it is waiting for."""

    doing: str = ""
    usage: Usage | None = None
    trace: dict[str, Any] | None = None
    text: str = ""  # what it said last
    ready: bool = True  # whether its MCP servers have started: a session without them is no outcome


class Journal:
    """Gives access to a target's progress, so that its work so far is kept when a call is abandoned."""

    def __init__(self) -> None:
        self.read: Callable[[], SoFar] = SoFar


Ask = Callable[["Request"], Awaitable["Answer | Failure"]]


class Doubled(Protocol):
    """What puts doubles in the place of MCP servers, and says in the result what came from them."""

    async def __call__(self, request: Request, ask: Ask) -> Answer | Failure:
        """Ask with doubles."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a target."""

    trial_id: str
    case_id: str
    input: str
    history: tuple[Message, ...] = ()  # the messages before `input`
    # Of a conversation: what happened in its earlier turns, by the place of each one's answer in `history`.
    happened: Mapping[int, tuple[Event, ...]] = {}
    system: str = ""
    mcp: tuple[McpServer, ...] = ()  # the only MCP servers that an agent may use
    skills: tuple[File, ...] = ()  # the archives of skills, for agents that take them
    params: dict[str, Any] = {}
    defaulted: tuple[str, ...] = ()  # names of the parameters that only have their default value
    repeat: int = 0
    stream: bool = True
    attempt: int = 1
    schema: dict[str, Any] | None = None  # the reply must be JSON of this shape
    files: tuple[File, ...] = ()  # images and PDFs
    vars: dict[str, Any] = {}  # the variables of the case, for functions that ask for them
    session: str | None = None  # of a conversation: the agent's session in the turn before; empty in the first turn
    works_in: WorkspaceSpec | None = None  # what its workspace is made from
    changes: File | None = None  # what the earlier turns of a conversation changed in the workspace
    workspace: Workspace | None = None  # the folder in which an agent works, once it is made
    prompt_hash: str = ""  # of a judge's prompt, whose text has a random marker in it
    embed: bool = False  # the answer's text must be the embedding of the input, as a JSON list
    allowance: Allowance | None = None  # what an agent, which makes many calls, may spend on this trial
    turnstile: Turnstile | None = None  # what an agent has to wait at before every call
    on_limit: OnLimit = "fail"  # what a limit that an agent reaches is; of judges and users, always a failure
    doubled: Doubled | None = None  # what gives it doubles of MCP servers
    journal: Journal = msgspec.field(default_factory=Journal)
    listener: Listener = NOBODY  # receives the answer while it is streamed


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A target's answer. Scorers look at `text`, a few of them at the rest; reasoning is only shown.

    finish_reason: stop, length (cut off at max_tokens), refusal, content_filter, tool_calls, or a provider's own value.

    An agent that reached a limit says which (`limit`), and its text is what it said last: see `on_limit` of a suite.
    """

    text: str
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    latency_ms: float | None = 0.0  # None: unknown, as in a batch
    first_token_ms: float | None = None
    reasoning: str | None = None
    trace: dict[str, Any] | None = None
    cost_usd: float | None = None  # as the target reports it; when it is scored, of all attempts, if known
    changes: File | None = None  # what an agent changed in its workspace
    limit: LimitKind | None = None  # the limit that ended an agent's work: time, turns, tokens or money
    limit_value: float | None = None  # how high that limit is: seconds, turns, tokens, USD
    given_up: bool = False  # abandoned while still running: `usage` is a lower bound, and more may be billed


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer.

    kinds: rate_limited, server, connection, files, stream, timeout, mcp (worth retrying) ·
    auth, model (this target is unusable) · context (the prompt is too long for the model) ·
    refused, malformed, crashed, steps (an agent ran out of turns, tokens or money, where that is a failure) ·
    workspace (it could not be made, or its changes cannot be kept) · budget, template, not_stored (no call was made) ·
    expired, cancelled, lost (a request in a batch) · pending (it is in a batch that cannot be read at the moment)
    """

    kind: str
    message: str
    retryable: bool = False
    retry_after: float | None = None
    usage: Usage | None = None
    cost_usd: float | None = None  # if the target reports the cost of the failed call
    maybe_billed: bool = False  # the request was sent, and it is unknown whether the provider processed it
    trace: dict[str, Any] | None = None
    changes: File | None = None  # what an agent changed in its workspace until then
    given_up: bool = False  # abandoned while still running: `usage` is a lower bound, and more may be billed


class EarlierTurn(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier turn of a conversation: a question, its answer, and what it cost in addition to the trial's row."""

    question: str
    answer: Answer
    cost: Cost = Cost()
    reply: str | None = None  # what a simulated user says next; empty: it is satisfied
    user_cost: Cost = Cost()  # of that reply


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call after all attempts; in a conversation, of its last call."""

    result: Answer | Failure
    attempts: int = 1
    cost: Cost = Cost()  # of all attempts
    waited_ms: float = 0.0
    tried: tuple[str, ...] = ()  # why each earlier attempt was discarded
    cached: bool = False
    started_at: float = 0.0
    turns: tuple[EarlierTurn, ...] = ()  # of a conversation, as stored so far; `cost` includes theirs
    sent: dict[str, Any] = {}  # the parameters that were sent, under the names used in suites
    batched: tuple[BatchPlace, ...] = ()  # where its requests were, if they were sent in batches


_LIMIT_NAMES = {"turns": "turn", "tokens": "token"}
_FAILURE_WORDS = {
    "rate_limited": "rate limited",
    "server": "server error",
    "connection": "no connection",
    "stream": "connection lost",
    "timeout": "timed out",
    "auth": "key rejected",
    "model": "no such model",
    "crashed": "crashed",
    "steps": "out of steps",
    "tool_use": "without the required tool",
    "template": "no prompt",
    "context": "prompt too long for the model",
    "expired": "expired in a batch",
    "cancelled": "cancelled in a batch",
    "lost": "lost with a batch",
}


LIMITS: tuple[LimitKind, ...] = get_args(LimitKind)


def limit_words(kind: str, value: float | None) -> str:
    """Say at which limit an agent was stopped."""
    if value is None:
        return f"stopped at its {_LIMIT_NAMES.get(kind, kind)} limit"
    if kind == "money":
        return f"stopped at its money limit: another call could exceed ${value:.2g}"
    unit = {"time": "s"}.get(kind) or (kind if value != 1 else kind.removesuffix("s"))
    amount = f"{value:g}" if kind == "time" else f"{value:,.0f}"
    return f"stopped at its {_LIMIT_NAMES.get(kind, kind)} limit after {amount} {unit}"


def failure_words(kind: str) -> str:
    """Return a kind of failure in words."""
    return _FAILURE_WORDS.get(kind, kind.replace("_", " "))


look_into(SoFar)
