"""A trial as a sample of an inspect-ai log: messages, output, scores, events and usage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from fairtrial.analyse.stored_run import Told
from fairtrial.reports.json import iso_time

Document = dict[str, Any]
_UNSCORED = msgspec.Raw(b"NaN")  # how inspect-ai marks a score that counts for nothing
_STOP_REASONS = {
    "stop": "stop",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
_SHORT = 1000  # characters of a text in the summary of a sample
_encode = msgspec.json.Encoder(enc_hook=repr).encode


def encode(document: Any) -> bytes:
    """Return a document as JSON; numbers that JSON does not have are written as inspect-ai does."""
    return _encode(document)


def sample_of(told: Told, model: str, scorer: str) -> Document:
    """Return a trial as a sample."""
    trial, case, chat, expected = told.trial, told.case, told.chat, told.trial.expected
    messages = [{"role": "user", "content": case.input}] if chat is None else chat.as_dicts()
    asked: list[Document] = [{**message, "source": "input"} for message in messages]
    usage = _usage(told)
    output: Document = {"model": trial.model or model, "choices": [], "completion": ""}
    said = [*asked, *_tool_messages(told)]
    if trial.answer is not None:
        answer = _answer(told, trial.model or model)
        said.append(answer)
        stop = _STOP_REASONS.get(trial.finish_reason or "stop", "unknown")
        output |= {"choices": [{"message": answer, "stop_reason": stop}], "completion": trial.answer}
    if usage:
        output["usage"] = usage
    seconds = None if trial.latency_ms is None else trial.latency_ms / 1000
    waited = trial.waited_ms / 1000
    sample = {
        "id": trial.case_id,
        "epoch": trial.repeat,
        "input": asked[0]["content"] if len(asked) == 1 else asked,
        "choices": list(case.choices) or None,
        "target": list(expected) if isinstance(expected, tuple) else expected or "",
        "messages": said,
        "output": output if seconds is None else {**output, "time": seconds},
        "scores": dict(_scores(told, scorer)),
        "metadata": _metadata(told),
        "store": {},
        "events": _events(told, asked, output),
        "model_usage": {model: usage} if usage else {},
        "role_usage": {},
        "started_at": iso_time(trial.started_at),
        "completed_at": None if seconds is None else iso_time(trial.started_at + waited + seconds),
        "total_time": None if seconds is None else waited + seconds,
        "working_time": seconds,
        "uuid": trial.trial_id,
        "error_retries": [],
        "attachments": {},
    }
    if trial.failure_kind is not None:
        text = f"{trial.failure_kind}: {trial.failure_message}"
        sample["error"] = {"message": text, "traceback": text, "traceback_ansi": text}
    return sample


def summary_of(sample: Document) -> Document:
    """Return the summary of a sample, which viewers list without opening it."""
    asked = sample["input"]
    kept = ("id", "epoch", "target", "scores", "model_usage", "started_at", "completed_at", "total_time", "uuid")
    summary = {
        **{name: sample[name] for name in kept},
        "working_time": sample["working_time"],
        "input": asked[:_SHORT] if isinstance(asked, str) else [_shortened(message) for message in asked],
        "metadata": {name: value for name, value in sample["metadata"].items() if isinstance(value, str | float)},
        "completed": True,
        "retries": 0,
        "message_count": len(sample["messages"]),
    }
    summary["scores"] = {name: _shortened(score) for name, score in sample["scores"].items()}
    return {**summary, "error": sample["error"]["message"]} if "error" in sample else summary


def _shortened(document: Document) -> Document:
    return {
        key: value[:_SHORT] if isinstance(value, str) else value
        for key, value in document.items()
        if key not in ("metadata", "tool_calls")
    }


def _answer(told: Told, model: str) -> Document:
    content: Any = told.trial.answer
    if told.trial.reasoning:
        content = [{"type": "reasoning", "reasoning": told.trial.reasoning}, {"type": "text", "text": content}]
    return {"role": "assistant", "content": content, "source": "generate", "model": model}


def tool_calls(told: Told) -> Iterator[tuple[str, Document]]:
    """Yield an id and the record of every tool call of a trial."""
    calls = (told.trial.trace or {}).get("tool_calls")
    for number, call in enumerate(calls if isinstance(calls, list) else (), 1):
        if isinstance(call, dict) and isinstance(call.get("tool"), str):
            yield f"{told.trial.trial_id}-{number}", call


def _tool_messages(told: Told) -> Iterator[Document]:
    for name, call in tool_calls(told):
        function, arguments = _function(call), _arguments(call.get("arguments"))
        request = {"id": name, "function": function, "arguments": arguments, "type": "function"}
        yield {"role": "assistant", "content": "", "source": "generate", "tool_calls": [request]}
        message = {"role": "tool", "content": _text(call.get("result")), "tool_call_id": name, "function": function}
        error = _tool_error(call)
        yield {**message, "error": error} if error else message


def _function(call: Document) -> str:
    return f"{call['server']}.{call['tool']}" if call.get("server") else str(call["tool"])


def _arguments(value: Any) -> Document:
    if isinstance(value, dict):
        return value
    return {} if value is None else {"arguments": value}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else encode(value).decode()


def _tool_error(call: Document) -> Document | None:
    if call.get("unfinished"):
        return {"type": "cancelled", "message": "abandoned before it returned"}
    return {"type": "unknown", "message": _text(call.get("result")) or "failed"} if call.get("error") else None


def _scores(told: Told, scorer: str) -> Iterator[tuple[str, Document]]:
    trial = told.trial
    common: Document = {"answer": trial.answer, "history": []}
    metadata: Document = {"scorer": trial.scorer, "confidence": trial.confidence, **(trial.details or {})}
    if told.comments:
        metadata["judges"] = [comment._asdict() for comment in told.comments]
    metadata = {name: value for name, value in metadata.items() if value is not None}
    if trial.score is not None:
        yield scorer, {"value": trial.score, "explanation": trial.notes or None, "metadata": metadata, **common}
    elif trial.unscored_kind is not None:
        reason = {"reason": trial.unscored_kind, "explanation": trial.unscored_message}
        yield scorer, {"value": _UNSCORED, **reason, "metadata": metadata, **common}
    for name, value in trial.metrics.items():
        if name != scorer:
            yield name, {"value": value if math.isfinite(value) else _UNSCORED, "history": []}


def _metadata(told: Told) -> Document:
    trial = told.trial
    facts = {
        "trial_id": trial.trial_id,
        "weight": trial.weight,
        "tags": list(trial.tags),
        "category": trial.category,
        "difficulty": trial.difficulty,
        "cluster": told.case.cluster or trial.case_id,
        "attempts": trial.attempts,
        "cached": trial.cached,
        "attached": [file.name for file in told.case.attach],
        "missing": trial.missing,
        "steps": (trial.trace or {}).get("messages"),
        **(trial.columns or {}),
    }
    return {name: value for name, value in facts.items() if value not in (None, "", [], ())}


def _usage(told: Told) -> Document | None:
    trial = told.trial
    if trial.prompt_tokens is None:
        return None
    read, written = trial.cache_read_tokens or 0, trial.cache_write_tokens or 0
    completion = trial.completion_tokens or 0
    usage = {
        "input_tokens": max(0, trial.prompt_tokens - read - written),  # inspect-ai counts cached ones apart
        "output_tokens": completion,
        "total_tokens": trial.prompt_tokens + completion,
        "input_tokens_cache_read": read,
        "input_tokens_cache_write": written,
        "reasoning_tokens": trial.reasoning_tokens or 0,
    }
    return usage if trial.cost_usd is None else {**usage, "total_cost": trial.cost_usd}


def _events(told: Told, asked: list[Document], output: Document) -> list[Document]:
    """Return the trial as a transcript: the call with its tool calls. When each step began is not known."""
    trial = told.trial
    start: Document = {"timestamp": iso_time(trial.started_at), "working_start": 0.0}
    tools = [
        {
            **start,
            "event": "tool",
            "type": "function",
            "id": name,
            "function": _function(call),
            "arguments": _arguments(call.get("arguments")),
            "result": _text(call.get("result")),
            "error": _tool_error(call),
            "events": [],
        }
        for name, call in tool_calls(told)
    ]
    call: Document = {
        **start,
        "event": "model",
        "model": output["model"],
        "input": asked,
        "tools": [],
        "tool_choice": "auto",
        "config": {},
        "output": output,
        "retries": trial.attempts - 1,
    }
    if trial.failure_kind is not None:
        call["error"] = f"{trial.failure_kind}: {trial.failure_message}"
    return [*tools, call]
