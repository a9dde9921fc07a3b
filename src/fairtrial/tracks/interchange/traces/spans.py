"""Calls out of OpenTelemetry spans: what the conventions for generative AI, old and new, and OpenInference write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from fairtrial.core.trace import ToolCall
from fairtrial.foreign.traces import Aside, Call, Said, text_of
from fairtrial.tracks.interchange.traces.call import parsed, said
from fairtrial.tracks.interchange.traces.tools import texts_in, tool_call, tool_calls_in

Attributes = Mapping[str, Any]
_NOT_CALLS = ("invoke_agent", "create_agent", "execute_tool", "embeddings", "retrieval", "invoke_workflow")
_NOT_LLM = ("AGENT", "CHAIN", "TOOL", "RETRIEVER", "EMBEDDING", "RERANKER", "GUARDRAIL", "EVALUATOR")
_OLD_PROMPT = re.compile(r"(?:gen_ai|llm)\.(prompt|prompts|completion|completions)\.(\d+)\.(role|content)")
_OPEN_INFERENCE = re.compile(
    r"llm\.(input|output)_messages\.(\d+)\.message\.(?:(role|content)|contents\.\d+\.message_content\.text)"
)
_OPERATION = "gen_ai.operation.name"
_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages", "request_data", "response_data")
_TELL = ("gen_ai.assistant.message", "gen_ai.tool.message", "gen_ai.choice")
_ASKING = ("prompt", "prompts", "input")
_DOCUMENT = re.compile(r"retrieval\.documents\.(\d+)\.document\.content")
_CALL_PART = re.compile(
    r"(?:gen_ai|llm)\.(?P<side>prompt|completion|input|output)(?:_messages)?\.(?P<n>\d+)\.(?:message\.)?"
    r"tool_calls\.(?P<m>\d+)\.(?:tool_call\.)?(?P<field>id|name|arguments|function\.name|function\.arguments)"
)
_MESSAGE_PART = re.compile(
    r"(?:gen_ai|llm)\.(?P<side>prompt|completion|input|output)(?:_messages)?\.(?P<n>\d+)\.(?:message\.)?"
    r"(?P<field>role|content|tool_call_id)"
)
_ROLES = {"gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant"}
_ABOUT = ("gen_ai.", "llm.", "input.", "output.", "openinference.", "otel.", "server.", "telemetry.", "logfire.")


def span_call(
    attributes: Attributes,
    events: Iterable[tuple[str, Attributes]] = (),
    **facts: Any,
) -> Call | None:
    """Return the call that a span records; None if it records none.

    Args:
        facts: Fields of the call that a span has outside its attributes.
    """
    kind = str(attributes.get("openinference.span.kind") or "")
    if attributes.get(_OPERATION) in _NOT_CALLS or kind.upper() in _NOT_LLM:
        return None
    events = list(events)
    asked, answer = _read(attributes, events, is_llm=kind.upper() == "LLM")
    if not any(message.role == "user" for message in asked):
        return None
    metadata = parsed(attributes.get("metadata"))
    own = {
        name: value
        for name, value in attributes.items()
        if not name.startswith(_ABOUT) and name not in ("metadata", "tag.tags") and not isinstance(value, dict | list)
    }
    return Call(
        messages=tuple(asked),
        answer=answer or None,
        model=_first(
            attributes, "gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "llm.request.model"
        ),
        provider=_first(attributes, "gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"),
        session=_first(attributes, "gen_ai.conversation.id", "session.id", "langfuse.session.id"),
        user=_first(attributes, "user.id", "enduser.id", "langfuse.user.id"),
        tool_calls=_tool_calls(attributes, events),
        metadata={**own, **(metadata if isinstance(metadata, dict) else {})},
        **{"tags": _tags(attributes), **facts},
    )


def span_aside(attributes: Attributes, trace: str, name: str) -> Aside | None:
    """Return what a span of a tool or a retriever records; None if it is another one."""
    kind, operation = str(attributes.get("openinference.span.kind") or "").upper(), attributes.get(_OPERATION)
    if kind == "RETRIEVER" or operation == "retrieval":
        listed = sorted((int(m[1]), value) for key, value in attributes.items() if (m := _DOCUMENT.fullmatch(key)))
        contexts = texts_in([value for _, value in listed] or attributes.get("gen_ai.retrieval.documents"))
        return Aside(trace=trace, contexts=contexts or texts_in(attributes.get("output.value")))
    if kind == "TOOL" or operation == "execute_tool":
        tool = _first(attributes, "gen_ai.tool.name", "tool.name") or name
        arguments = _value(attributes, "gen_ai.tool.call.arguments", "tool.parameters", "input.value")
        result = _value(attributes, "gen_ai.tool.call.result", "output.value")
        return Aside(trace=trace, tool_calls=(tool_call(tool, arguments, result),))
    return None


def _value(attributes: Attributes, *names: str) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) not in (None, "")), None)


def _tool_calls(attributes: Attributes, events: list[tuple[str, Attributes]]) -> tuple[ToolCall, ...]:
    """Return the calls of tools in messages, wherever the conventions keep these."""
    for name, own in events:
        if name == "gen_ai.client.inference.operation.details":
            attributes = {**attributes, **own}
    whole = [value for key in _MESSAGES if (value := attributes.get(key))]
    told = [
        {"role": name.split(".")[1], **own} for name, own in [*events, *_listed_events(attributes)] if name in _TELL
    ]
    return tool_calls_in(*whole, _numbered_calls(attributes), told)


def _numbered_calls(attributes: Attributes) -> list[dict[str, Any]]:
    """Return messages whose calls and results of tools are spread over attributes with numbers in their names."""
    messages: dict[tuple[bool, int], dict[str, Any]] = {}
    for key, value in attributes.items():
        if match := _CALL_PART.fullmatch(key):
            message = messages.setdefault((match["side"] not in _ASKING, int(match["n"])), {"calls": {}})
            message["calls"].setdefault(int(match["m"]), {})[match["field"].removeprefix("function.")] = value
        elif (match := _MESSAGE_PART.fullmatch(key)) is not None:
            message = messages.setdefault((match["side"] not in _ASKING, int(match["n"])), {"calls": {}})
            message[match["field"]] = value
    return [
        {**message, "tool_calls": [call for _, call in sorted(message.pop("calls").items())]}
        for _, message in sorted(messages.items())
    ]


def _read(attributes: Attributes, events: list[tuple[str, Attributes]], *, is_llm: bool) -> tuple[list[Said], str]:
    """Return what was asked and answered, from the first place that has it."""
    for name, own in events:
        if name == "gen_ai.client.inference.operation.details":
            attributes = {**attributes, **own}
    asked, answered = _new(attributes)
    if not asked:
        asked, answered = _numbered(attributes, _OLD_PROMPT, ("prompt", "prompts"))
    if not asked:
        asked, answered = _numbered(attributes, _OPEN_INFERENCE, ("input",))
    if not asked:
        asked, answered = _from_events([*events, *_listed_events(attributes)])
    if not asked and attributes.get("request_data"):  # Logfire's own
        asked = said(attributes["request_data"])
        answered = said(attributes.get("response_data"), "assistant")
    if not asked and is_llm:
        asked = said(attributes.get("input.value"))
        answered = said(attributes.get("output.value"), "assistant")
    return asked, "\n".join(message.text for message in answered if message.text)


def _new(attributes: Attributes) -> tuple[list[Said], list[Said]]:
    asked = said(attributes.get("gen_ai.input.messages"))
    instructions = parsed(attributes.get("gen_ai.system_instructions"))
    system = said([{"role": "system", "parts": instructions}]) if isinstance(instructions, list) else []
    if isinstance(instructions, str) and instructions:
        system = [Said("system", instructions)]
    return (system + asked if asked else []), said(attributes.get("gen_ai.output.messages"), "assistant")


def _numbered(
    attributes: Attributes, pattern: re.Pattern[str], asking: tuple[str, ...]
) -> tuple[list[Said], list[Said]]:
    """Read messages that are spread over attributes with numbers in their names."""
    sides: dict[bool, dict[int, dict[str, str]]] = {True: {}, False: {}}
    for name, value in attributes.items():
        match = pattern.fullmatch(name)
        if match:
            message = sides[match[1] in asking].setdefault(int(match[2]), {})
            field = match[3] or "content"
            message[field] = f"{message['content']}\n{value}" if match[3] is None and "content" in message else value
    asked, answered = (
        [item for _, message in sorted(side.items()) for item in _one(message, role)]
        for side, role in ((sides[True], "user"), (sides[False], "assistant"))
    )
    return asked, answered


def _one(message: Mapping[str, Any], role: str) -> list[Said]:
    return said([{"role": message.get("role") or role, "content": message.get("content")}])


def _listed_events(attributes: Attributes) -> list[tuple[str, Attributes]]:
    """Return events that are in an attribute as a list, where Logfire keeps them."""
    events = parsed(attributes.get("events") or attributes.get("all_messages_events"))
    if not isinstance(events, list):
        return []
    return [(str(event.get("event.name") or ""), event) for event in events if isinstance(event, dict)]


def _from_events(events: list[tuple[str, Attributes]]) -> tuple[list[Said], list[Said]]:
    asked: list[Said] = []
    answered: list[Said] = []
    for name, attributes in events:
        if name in _ROLES and attributes.get("content") not in (None, ""):
            asked += _one(attributes, _ROLES[name])
        elif name == "gen_ai.choice":
            answered += said(attributes.get("message") or attributes.get("content"), "assistant")
        elif name == "gen_ai.content.prompt":
            asked += said(attributes.get("gen_ai.prompt"))
        elif name == "gen_ai.content.completion":
            answered += said(attributes.get("gen_ai.completion"), "assistant")
    return asked, answered


def _tags(attributes: Attributes) -> tuple[str, ...]:
    tags = parsed(attributes.get("tag.tags") or attributes.get("langfuse.trace.tags"))
    return tuple(map(str, tags)) if isinstance(tags, list) else (tags,) if isinstance(tags, str) and tags else ()


def _first(attributes: Attributes, *names: str) -> str:
    return next((text_of(attributes[name]) for name in names if attributes.get(name)), "")
