"""A conversation with a model, with or without tools; each API has its own format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from fairtrial.core.answer import TOOL_CALLS, Answer, Failure, Request, Usage
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.file import File
from fairtrial.providers.mending import read_mended
from fairtrial.providers.params import supported_params
from fairtrial.providers.recall import recall
from fairtrial.providers.replies import UNREADABLE, calls_trace
from fairtrial.providers.tools import RequestedCall, Tool, ToolResult, ToolRound

# The exceptions that reading a turn may raise.
BAD_TURN = (*UNREADABLE, KeyError, IndexError, TypeError, AttributeError)

_MAX_NAME = 150  # characters of the words that servers choose: why an answer ended, and who wrote it
MAX_TEXT = 16 * 2**20  # characters of an answer, with its reasoning

_RANGES = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    }
)


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A model's reply in one turn. `raw` is the reply as it came, of which a part is sent back in the conversation."""

    text: str
    calls: tuple[RequestedCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    raw: bytes = b""
    thinking: str = ""
    cost_usd: float | None = None

    def answer(self, latency_ms: float | None, first_token_ms: float | None = None) -> Answer:
        """Return the turn as an answer; one that consists only of tool calls is marked as such."""
        only_calls = bool(self.calls) and not self.text.strip()
        return Answer(
            text=self.text,
            finish_reason=TOOL_CALLS if only_calls else self.finish_reason and self.finish_reason[:_MAX_NAME],
            usage=self.usage,
            model=self.model and self.model[:_MAX_NAME],
            latency_ms=latency_ms,
            first_token_ms=first_token_ms,
            reasoning=self.thinking or None,
            trace=calls_trace((call.name, call.arguments) for call in self.calls) if self.calls else None,
            cost_usd=self.cost_usd,
        )


def read_turn(conversation: type[Conversation] | Conversation, body: bytes) -> Turn | Failure:
    """Read a whole reply, if it can be read, within the limit of streamed ones."""
    return within_limit(read_mended(conversation.read, body))


Read = TypeVar("Read", Turn, Answer)


def within_limit(result: Read | Failure) -> Read | Failure:
    """Return a result, or the failure of one that is too long, which has been paid for."""
    if isinstance(result, Failure):
        return result
    thoughts = result.thinking if isinstance(result, Turn) else result.reasoning
    if len(result.text) + len(thoughts or "") <= MAX_TEXT:
        return result
    message = f"the server sent an answer of more than {MAX_TEXT >> 20} million characters"
    return Failure(kind="malformed", message=message, usage=result.usage, cost_usd=result.cost_usd)


class Conversation:
    """One conversation with one model. Each API (`targets/*_api.py`) has a subclass."""

    path: ClassVar[str] = ""  # of the API, below a provider's base URL
    call_ids: ClassVar[bool] = True  # whether a result says by an id which call it answers

    def __init__(
        self,
        spec: TargetSpec,
        request: Request,
        tools: Sequence[Tool] = (),
        *,
        accepted: Mapping[str, Any] | None = None,
        limit_name: str = "",
    ) -> None:
        """`accepted` are those of the request's parameters that the target accepts, where they are known.

        `limit_name` is the name of `max_tokens` that the server has asked for.
        """
        self.spec, self.request, self.tools, self.limit_name = spec, request, tools, limit_name
        self._accepted = accepted
        self.messages: list[Any] = []
        recalled = recall(request.happened, tools, ids=self.call_ids)
        for place, message in enumerate(request.history):
            for step in recalled.get(place, ()):
                self._recall(step)
            self.messages.append(self.message(message.role, message.content))
        self.messages.append(self.message("user", request.input, request.files))

    def params(self) -> dict[str, Any]:
        """Return the parameters to send, by their names in suites."""
        if self._accepted is not None:
            return dict(self._accepted)
        return supported_params(self.spec, self.request.params, tools=bool(self.tools))

    def message(self, role: str, text: str, files: Sequence[File] = ()) -> dict[str, Any]:
        """Return a message in this API's format; files come before the text."""
        parts = [*map(self.file_part, files), {"type": "text", "text": text}]
        return {"role": role, "content": parts if files else text}

    def file_part(self, file: File) -> dict[str, Any]:
        """Return an image or a PDF as a part of a message."""
        raise NotImplementedError

    def body(self) -> dict[str, Any]:
        """Return the conversation so far as a request body."""
        raise NotImplementedError

    @staticmethod
    def read(reply: bytes) -> Turn | Failure:
        """Read the model's next turn from a complete reply."""
        raise NotImplementedError

    def add(self, turn: Turn, results: Sequence[ToolResult]) -> None:
        """Append the model's turn and the results of its tool calls."""
        self.messages += [*self.said(turn), *self.returned(results)]

    def _recall(self, step: ToolRound) -> None:
        """Append a message of an earlier turn in which tools were called, and what they returned."""
        self.messages += [*self.called(step), *self.returned(step.results)]

    def said(self, turn: Turn) -> list[Any]:
        """Return the model's turn as it came, with whatever else the API wants back."""
        raise NotImplementedError

    def called(self, step: ToolRound) -> list[Any]:
        """Return what the model said in a step of an earlier turn, made from its record: nothing else is left of it."""
        raise NotImplementedError

    def returned(self, results: Sequence[ToolResult]) -> list[Any]:
        """Return the results of tool calls as messages."""
        raise NotImplementedError


def read_call(identity: Any, name: Any, arguments: Any) -> RequestedCall:
    """Read a call whose arguments are a JSON string, or already a mapping."""
    problem, decoded = "", arguments
    if arguments is None or arguments == "":
        decoded = {}
    elif isinstance(arguments, str):
        try:
            decoded = msgspec.json.decode(arguments)
        except UNREADABLE as error:
            problem = f"the arguments are not JSON: {error}"
    if not problem and not isinstance(decoded, dict):
        problem = "the arguments are not a JSON object"
    return RequestedCall(id=str(identity or ""), name=str(name), arguments=decoded, problem=problem)


def merge(body: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return a request body, or settings, with more keys; a mapping in both is merged, anything else is replaced."""
    result = dict(body)
    for key, value in more.items():
        known = result.get(key)
        result[key] = merge(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result


def without_ranges(schema: Any) -> Any:
    """Return a schema without keywords that structured outputs reject; ranges are checked when reading the reply."""
    if isinstance(schema, list):
        return [without_ranges(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: value for key, value in schema.items() if key not in _RANGES}
    for key in ("items", "anyOf"):
        if key in result:
            result[key] = without_ranges(result[key])
    if "properties" in result:
        result["properties"] = {name: without_ranges(value) for name, value in result["properties"].items()}
    return result
