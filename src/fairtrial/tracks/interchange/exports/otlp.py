"""A run as OpenTelemetry spans, with the conventions for generative AI: OTLP as JSON, as collectors write it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from typing import IO, Any

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.core.events import CallEvent, ErrorEvent, Event, MessageEvent, ResultEvent
from fairtrial.tracks.interchange.exports.trajectory_steps import (
    Document,
    Placed,
    Step,
    Trajectory,
    steps_of,
    tool_name,
    trajectories,
)

EVENT, MESSAGE, REASONING, CALL, RESULT, FACTS = (
    f"fairtrial.{name}" for name in ("event", "message", "reasoning", "call", "result", "trial")
)
_ERROR = {"code": 2}
_INTERNAL, _CLIENT = 1, 3
_FINISHES = {"refusal": "content_filter", "tool_calls": "tool_call"}
_encode = msgspec.json.Encoder(enc_hook=repr).encode


def write(run: Run, file: IO[str]) -> None:
    """Write the spans of every trial, one trial after the other."""
    resource = {"attributes": _attributes({"service.name": "fairtrial", "service.version": version("fairtrial")})}
    scope = {"name": "fairtrial", "version": version("fairtrial")}
    file.write(f'{{"resourceSpans":[{{"resource":{_text(resource)},"scopeSpans":[{{"scope":{_text(scope)},"spans":[')
    separator = "\n"
    for one in trajectories(run):
        for span in spans_of(run, one):
            file.write(separator + _text(span))
            separator = ",\n"
    file.write("\n]}]}]}\n")


def spans_of(run: Run, one: Trajectory) -> Iterator[Document]:
    """Yield the spans of a trial: the agent's, one for each time that it asked its model, and one for each tool."""
    return _Spans(run, one).all()


def _text(value: Any) -> str:
    return _encode(value).decode()


def _attributes(values: Document) -> list[Document]:
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value not in (None, "")]


def _value(value: Any) -> Document:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value if isinstance(value, str) else _text(value)}


class _Spans:
    """The spans of one trial. Their ids follow from what they stand for: written again, they are the same."""

    def __init__(self, run: Run, one: Trajectory) -> None:
        self._run, self._one, self._began = run, one, one.moments()
        self._trial = one.told.trial
        self._trace = self._id("trace", 16)
        self._now = self._began[1]

    def _id(self, name: str, size: int = 8) -> str:
        key = f"{self._run.id} {self._trial.trial_id} {name}"
        return hashlib.sha256(key.encode()).hexdigest()[: 2 * size]

    def _at(self, event: Event) -> float:
        """Return when something happened; where that is not told, when the last thing did that is."""
        if event.at is not None:
            self._now = self._began[event.turn] + event.at
        return self._now

    def all(self) -> Iterator[Document]:
        steps = steps_of(self._one.events)
        root = self._id("root")
        started = self._began[1]
        ended = max([started + (self._trial.latency_ms or 0.0) / 1000, *(self._at(e) for e in self._one.events)])
        self._now = started
        events = [self._evaluation()] if self._trial.score is not None else []
        yield {
            **self._span(root, "", f"invoke_agent {self._one.agent}", _INTERNAL, started, ended),
            "attributes": _attributes(self._of_trial()),
            "events": [*self._told(steps), *events],
            **({"status": {**_ERROR, "message": self._trial.failure_message or ""}} if self._failed else {}),
        }
        yield from self._inner(steps, root)

    @property
    def _failed(self) -> bool:
        return self._trial.failure_kind is not None

    def _span(self, name: str, parent: str, title: str, kind: int, start: float, end: float) -> Document:
        span = {"traceId": self._trace, "spanId": name, "name": title, "kind": kind}
        times = {"startTimeUnixNano": _nanoseconds(start), "endTimeUnixNano": _nanoseconds(max(start, end))}
        return {**span, **({"parentSpanId": parent} if parent else {}), **times}

    def _of_trial(self) -> Document:
        trial, one = self._trial, self._one
        questions = [event for event in one.events if isinstance(event, MessageEvent) and event.role == "user"]
        answer = [{"role": "assistant", "parts": [_part(trial.answer or "")], "finish_reason": self._finish()}]
        return {
            **self._common("invoke_agent"),
            "gen_ai.agent.name": one.agent,
            "gen_ai.agent.version": one.version,
            "gen_ai.conversation.id": (trial.trace or {}).get("session_id") or trial.trial_id,
            "gen_ai.usage.input_tokens": trial.prompt_tokens,
            "gen_ai.usage.output_tokens": trial.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": trial.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": trial.cache_write_tokens,
            "gen_ai.system_instructions": _text([_part(one.system)]) if one.system else None,
            "gen_ai.input.messages": _text([_message(event) for event in questions[:1]]),
            "gen_ai.output.messages": _text(answer) if trial.answer is not None else None,
            "error.type": trial.failure_kind,
            FACTS: _text(one.facts(self._run)),
        }

    def _finish(self) -> str:
        reason = self._trial.finish_reason or "stop"
        return _FINISHES.get(reason, reason)

    def _common(self, operation: str) -> Document:
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": self._one.arm.target.provider,
            "gen_ai.request.model": self._one.arm.target.model_behind or self._one.model,
            "gen_ai.response.model": self._trial.model,
        }

    def _evaluation(self) -> Document:
        attributes = {
            "gen_ai.evaluation.name": self._trial.scorer or "score",
            "gen_ai.evaluation.score.value": float(self._trial.score or 0.0),
            "gen_ai.evaluation.explanation": self._trial.notes,
        }
        return {
            "name": "gen_ai.evaluation.result",
            "timeUnixNano": _nanoseconds(self._now),
            "attributes": _attributes(attributes),
        }

    def _told(self, steps: list[Step]) -> list[Document]:
        """Return what spans are not for: messages of users and systems, changed files, limits, errors, notes."""
        found: list[Placed] = [step.first for step in steps if step.source != "agent"]
        return [
            {
                "name": _EVENTS.get(type(one.event), "fairtrial.event"),
                "timeUnixNano": _nanoseconds(self._at(one.event)),
                "attributes": _attributes({EVENT: _text(one.data()), **_exception(one.event)}),
            }
            for one in found
        ]

    def _inner(self, steps: list[Step], parent: str) -> Iterator[Document]:
        """Yield the spans below an agent's: its model gets what came since it was asked last."""
        news: list[Document] = []
        for step in steps:
            if step.source != "agent":
                news += [_message(step.message.event)] if step.message is not None else []
                continue
            yield self._chat(step, parent, news)
            news = [_response(result.event) for result in step.results.values()]
            for call in step.calls:
                yield from self._tool(call, step, parent)

    def _chat(self, step: Step, parent: str, news: list[Document]) -> Document:
        parts: list[Document] = []
        own: Document = {}
        if step.reasoning is not None:
            parts.append({"type": "reasoning", "content": step.reasoning.event.text})
            own[REASONING] = _text(step.reasoning.data("text"))
        if step.message is not None:
            parts.append(_part(step.message.event.text))
            own[MESSAGE] = _text(step.message.data("text"))
        parts += [_request(call.event) for call in step.calls]
        finish = "tool_call" if step.calls else self._finish()
        start = self._at(step.first.event)
        attributes = {
            **self._common("chat"),
            "gen_ai.input.messages": _text(news) if news else None,
            "gen_ai.output.messages": _text([{"role": "assistant", "parts": parts, "finish_reason": finish}]),
            "gen_ai.response.finish_reasons": [finish],
            **own,
        }
        model = attributes["gen_ai.request.model"]
        name = self._id(f"chat {step.first.n}")
        span = self._span(name, parent, f"chat {model}".strip(), _CLIENT, start, start)
        return {**span, "attributes": _attributes(attributes)}

    def _tool(self, call: Placed, step: Step, parent: str) -> Iterator[Document]:
        event: CallEvent = call.event
        result, inner = step.results.get(event.id), step.inside.get(event.id)
        name, start = self._id(f"tool {call.n}"), self._at(event)
        end = start if result is None else max(start + (result.event.ms or 0.0) / 1000, self._at(result.event))
        failed = result is not None and result.event.error
        attributes: Document = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool_name(event),
            "gen_ai.tool.type": "extension" if event.server else "function",
            "gen_ai.tool.call.id": event.id,
            "gen_ai.tool.call.arguments": None if event.arguments is None else _text(event.arguments),
            "gen_ai.tool.call.result": None if result is None else result.event.text,
            "error.type": ("rejected" if result.event.rejected else "tool_error") if result and failed else None,
            CALL: _text(call.data("arguments")),
            RESULT: None if result is None else _text(result.data("text")),
        }
        span = self._span(name, parent, f"execute_tool {event.tool}", _INTERNAL, start, end)
        yield {**span, "attributes": _attributes(attributes), **({"status": _ERROR} if failed else {})}
        if inner is not None:
            agent, below = inner[0].first.event.agent or "subagent", self._id(f"agent {call.n}")
            own = {**self._common("invoke_agent"), "gen_ai.agent.name": agent}
            span = self._span(below, name, f"invoke_agent {agent}", _INTERNAL, start, end)
            yield {**span, "attributes": _attributes(own), "events": self._told(inner)}
            yield from self._inner(inner, below)


_EVENTS: dict[type, str] = {ErrorEvent: "exception"}


def _exception(event: Event) -> Document:
    if not isinstance(event, ErrorEvent):
        return {}
    return {"exception.type": event.kind or "error", "exception.message": event.text}


def _part(text: str) -> Document:
    return {"type": "text", "content": text}


def _message(event: MessageEvent) -> Document:
    return {"role": event.role, "parts": [_part(event.text)]}


def _request(call: CallEvent) -> Document:
    return {"type": "tool_call", "id": call.id, "name": tool_name(call), "arguments": call.arguments}


def _response(result: ResultEvent) -> Document:
    part = {"type": "tool_call_response", "id": result.call, "response": result.text}
    return {"role": "tool", "parts": [part]}


def _nanoseconds(seconds: float) -> str:
    return str(max(0, round(seconds * 1e6)) * 1000)
