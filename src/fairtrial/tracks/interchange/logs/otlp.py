"""Traces of OpenTelemetry, as OTLP in JSON, with the conventions for generative AI: each trace is a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairtrial.core.answer import Failure, Usage
from fairtrial.core.errors import FairtrialError
from fairtrial.core.events import Event, read_events
from fairtrial.foreign.chronicle import Chronicle
from fairtrial.foreign.logs import LoggedSession
from fairtrial.foreign.source import Source
from fairtrial.tables.row import TableError
from fairtrial.tracks.interchange.exports.otlp import CALL, EVENT, FACTS, MESSAGE, REASONING, RESULT
from fairtrial.tracks.interchange.logs._lines import split_tool, tolerant
from fairtrial.tracks.interchange.logs.atif import take_trial
from fairtrial.tracks.interchange.traces import otlp
from fairtrial.tracks.interchange.traces.call import parsed
from fairtrial.tracks.interchange.traces.spans import span_aside, span_call
from fairtrial.tracks.interchange.traces.stream import objects
from fairtrial.tracks.interchange.values import clean_text, count_of, dict_of, list_of, name_of, text_of

_OPERATION = "gen_ai.operation.name"
_DEEPEST = 100


def recognises(source: Source) -> bool:
    """Return whether a file is of this format, with spans of models, agents or tools."""
    head = source.head
    told = any(mark in head for mark in (b"gen_ai.", b"openinference.span.kind", b"llm.model_name"))
    return otlp.recognises(source.path, head) and told


def companions(source: Source) -> Iterable[Path]:
    """Return nothing: a trace is in one file."""
    return ()


def sessions(source: Source) -> Iterator[LoggedSession]:
    """Yield the traces in a file."""
    traces: dict[str, list[_Span]] = {}
    stopped = ""
    try:
        for span in objects(source.path, {"spans"}):
            traces.setdefault(str(span.get("traceId")), []).append(_span(span))
    except TableError as error:
        if not traces:
            raise FairtrialError(f"{source.path.name}: {error}") from None
        stopped = str(error)  # it is still being written, or was cut off
    for name, spans in traces.items():
        session = _Traced(name, spans).session()
        if session is not None:
            yield msgspec.structs.replace(session, stopped=stopped)


class _Span(NamedTuple):
    id: str
    parent: str
    name: str
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    start: float | None
    end: float | None
    failed: bool

    @property
    def operation(self) -> str:
        return str(self.attributes.get(_OPERATION) or "")


def _span(span: dict[str, Any]) -> _Span:
    events = [dict_of(event) for event in list_of(span.get("events"))]
    return _Span(
        str(span.get("spanId")),
        str(span.get("parentSpanId") or ""),
        str(span.get("name") or ""),
        otlp.attributes_of(span.get("attributes")),
        [(str(event.get("name")), otlp.attributes_of(event.get("attributes"))) for event in events],
        _seconds(span.get("startTimeUnixNano")),
        _seconds(span.get("endTimeUnixNano")),
        bool(otlp.error_of(span.get("status"))),
    )


def _seconds(nanoseconds: Any) -> float | None:
    try:
        return int(nanoseconds) / 1e9
    except (TypeError, ValueError, OverflowError):
        return None


class _Traced:
    """One trace. Where we wrote it, spans say the place of every event; others are in the order of their times."""

    def __init__(self, name: str, spans: list[_Span]) -> None:
        self.chronicle = Chronicle("agent")
        self.chronicle.id = name
        self._spans = sorted(spans, key=lambda span: span.start or 0.0)
        self._by_id = {span.id: span for span in spans}
        self._ours: list[tuple[int, Event]] = []
        self._asked: dict[str, list[str]] = {}  # questions that were told, by the subagent's call

    def session(self) -> LoggedSession | None:
        """Return the trace as a session; None if nothing in it is of a model or tool."""
        for span in self._spans:
            tolerant(self.chronicle, f"span {name_of(span.operation)}".strip(), self._take, span)
        told = self.chronicle
        for _, event in sorted(self._ours, key=lambda one: one[0]):
            told.add(event)
        return told.session()

    def _within(self, span: _Span) -> str:
        """Return the call that started the subagent in whose work a span is."""
        seen = 0
        above = self._by_id.get(span.parent)
        while above is not None and seen < _DEEPEST:
            if above.operation == "execute_tool":
                return str(above.attributes.get("gen_ai.tool.call.id") or above.id)
            above, seen = self._by_id.get(above.parent), seen + 1
        return ""

    def _take(self, span: _Span) -> None:
        within = self._within(span)
        if span.operation == "invoke_agent":
            self._agent(span, within)
        self._keep(span)
        if any(name in span.attributes for name in (MESSAGE, REASONING, CALL)):
            self._own(span)
        elif not self._ours:
            self._foreign(span, within)
        if span.operation == "chat" or "gen_ai.usage.output_tokens" in span.attributes:
            told = self.chronicle
            told.model = told.model or text_of(
                span.attributes.get("gen_ai.response.model") or span.attributes.get("gen_ai.request.model")
            )
        if span.operation != "invoke_agent":
            self.chronicle.used(span.id, _usage(span.attributes))

    def _agent(self, span: _Span, within: str) -> None:
        told, attributes = self.chronicle, span.attributes
        name = name_of(attributes.get("gen_ai.agent.name") or "")
        if within:
            told.delegate(within, name)
            return
        told.agent = name or told.agent
        told.version = text_of(attributes.get("gen_ai.agent.version"))
        told.usage = _usage(attributes)
        told.system = "\n".join(
            text_of(dict_of(part).get("content"))
            for part in list_of(parsed(attributes.get("gen_ai.system_instructions")))
        )
        ours = dict_of(parsed(attributes.get(FACTS)))
        take_trial(told, ours)
        told.id = text_of(attributes.get("gen_ai.conversation.id")) or told.id
        if span.failed and not ours:
            message = text_of(attributes.get("error.type")) or "the agent failed"
            told.failure = Failure(kind="crashed", message=clean_text(message))

    # -- what we wrote -----------------------------------------------------------------------------

    def _keep(self, span: _Span) -> None:
        for _, attributes in span.events:
            self._add(attributes.get(EVENT))

    def _own(self, span: _Span) -> None:
        attributes = span.attributes
        output = dict_of(next(iter(list_of(parsed(attributes.get("gen_ai.output.messages")))), {}))
        parts = {str(dict_of(part).get("type")): dict_of(part) for part in reversed(list_of(output.get("parts")))}
        self._add(attributes.get(REASONING), text=text_of(parts.get("reasoning", {}).get("content")))
        self._add(attributes.get(MESSAGE), text=text_of(parts.get("text", {}).get("content")))
        arguments = attributes.get("gen_ai.tool.call.arguments")
        given = {} if arguments is None else {"arguments": msgspec.json.decode(text_of(arguments))}
        self._add(attributes.get(CALL), **given)
        self._add(attributes.get(RESULT), text=text_of(attributes.get("gen_ai.tool.call.result")))

    def _add(self, event: Any, **texts: Any) -> None:
        data = dict_of(parsed(event))
        if not data:
            return
        place = data.pop("n", None)
        try:
            (read,) = read_events([{**texts, **data}])
        except msgspec.ValidationError:
            self.chronicle.skip("event of another version of fairtrial")
            return
        self._ours.append((place if isinstance(place, int) else len(self._ours), read))

    # -- what others wrote -------------------------------------------------------------------------

    def _foreign(self, span: _Span, within: str) -> None:
        aside = span_aside(span.attributes, "", span.name)
        if aside is not None:
            for call in aside.tool_calls:
                self._tool(span, call.tool, call.arguments, call.result, within)
            return
        said = span_call(span.attributes, span.events, id=span.id)
        if said is None:
            return
        told = self.chronicle
        asked = self._asked.setdefault(within, [])
        for text in said.questions[len(asked) :] if said.questions[: len(asked)] == asked else said.questions:
            told.ask(text, span.start, within=within)
            asked.append(text)
        told.system = told.system or said.system
        for thought in _reasoning(span.attributes):
            told.think(thought, span.end, within=within)
        told.say(said.answer or "", span.end, model=said.model, within=within)
        told.model = told.model or said.model
        for name, tool, arguments in _requests(span.attributes):
            server, own = split_tool(tool)
            told.call(name, own, arguments, span.end, server=server, within=within)

    def _tool(self, span: _Span, tool: str, arguments: Any, result: str, within: str) -> None:
        told, name = self.chronicle, text_of(span.attributes.get("gen_ai.tool.call.id")) or span.id
        server, own = split_tool(tool)
        told.call(name, own, arguments, span.start, server=server, within=within)
        failed = span.failed or bool(span.attributes.get("error.type"))
        ms = None if span.start is None or span.end is None else 1000 * (span.end - span.start)
        told.returned(name, result, span.end, error=failed, ms=ms)


def _output_parts(attributes: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in list_of(parsed(attributes.get("gen_ai.output.messages"))):
        yield from map(dict_of, list_of(dict_of(message).get("parts")))


def _reasoning(attributes: dict[str, Any]) -> Iterator[str]:
    return (text_of(part.get("content")) for part in _output_parts(attributes) if part.get("type") == "reasoning")


def _requests(attributes: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the calls that a model asked for, with their ids: the spans of their tools have the same ones."""
    for part in _output_parts(attributes):
        if part.get("type") == "tool_call" and part.get("id") and part.get("name"):
            yield text_of(part["id"]), text_of(part["name"]), parsed(part.get("arguments"))


def _usage(attributes: dict[str, Any]) -> Usage | None:
    prompt, completion = (attributes.get(f"gen_ai.usage.{side}_tokens") for side in ("input", "output"))
    if prompt is None and completion is None:
        return None
    return Usage(
        prompt=count_of(prompt),
        completion=count_of(completion),
        cache_read=count_of(attributes.get("gen_ai.usage.cache_read.input_tokens")),
        cache_write=count_of(attributes.get("gen_ai.usage.cache_creation.input_tokens")),
    )
