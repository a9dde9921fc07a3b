"""Assertions about a call and what an agent did: time, cost, tools."""

from __future__ import annotations

import json

from fairtrial.tracks.interchange.importers._promptfoo.check import (
    Check,
    Make,
    Result,
    Workshop,
    given_or,
    text_of,
    words_of,
)


def latency(check: Check, at: Workshop) -> Result:
    return Result({"type": "latency", "max": given_or(check.threshold, 0)})


def cost(check: Check, at: Workshop) -> Result:
    return Result({"type": "cost", "max": given_or(check.threshold, 0)})


def refusal(check: Check, at: Workshop) -> Result:
    return Result({"type": "refusal"})


def finish_reason(check: Check, at: Workshop) -> Result:
    return Result({"type": "javascript", "code": f"context.finish_reason === {json.dumps(text_of(check.value))}"})


def tools_used(check: Check, at: Workshop) -> Result | None:
    value = check.value
    if isinstance(value, dict):
        name = value.get("name") or value.get("pattern")
        limits = {key: int(value[key]) for key in ("min", "max") if isinstance(value.get(key), int)}
        names = [str(name)] if name else []
    else:
        names, limits = words_of(value, several=False), {}
    if not names:
        return None
    if limits.get("max") == 0:
        return Result({"type": "tool_calls", "forbidden": names})
    return Result({"type": "tool_calls", "names": names, **limits})


def tool_sequence(check: Check, at: Workshop) -> Result | None:
    value = check.value if isinstance(check.value, dict) else {"steps": check.value}
    steps = [
        str(step.get("name") or step.get("pattern")) if isinstance(step, dict) else str(step)
        for step in value.get("steps") or []
    ]
    if not steps:
        return None
    order = "exact" if value.get("mode") == "exact" else "in_order"
    return Result({"type": "tool_calls", "names": steps, "order": order})


def tool_arguments(check: Check, at: Workshop) -> Result | None:
    value = check.value if isinstance(check.value, dict) else {}
    name, arguments = value.get("name") or value.get("pattern"), value.get("args", value.get("arguments"))
    if not name or not isinstance(arguments, dict):
        return None
    if value.get("mode") == "exact":
        at.notes.differs("`trajectory:tool-args-match` with `mode: exact`: further arguments are allowed here")
    return Result({"type": "tool_calls", "arguments": {str(name): arguments}})


def step_count(check: Check, at: Workshop) -> Result | None:
    value = check.value if isinstance(check.value, dict) else {}
    limits = {key: int(value[key]) for key in ("min", "max") if isinstance(value.get(key), int)}
    kind = str(value.get("type") or "")
    if not limits:
        return None
    if kind not in ("", "tool", "command"):
        at.notes.differs(
            f"`trajectory:step-count` of `{kind}`: steps of this kind are the spans that the provider sends, by name"
        )
    arguments = {"kind": kind, "pattern": str(value.get("pattern") or "*"), **limits}
    return Result({"type": "python", "function": at.code.function("count_steps"), "arguments": arguments})


def tool_f1(check: Check, at: Workshop) -> Result:
    wanted = json.dumps(words_of(check.value, several=True))
    code = (f"const wanted = new Set({wanted}), made = new Set(tool_calls.map((call) => call.tool));\n"
            "const both = [...made].filter((name) => wanted.has(name)).length;\n"
            "return both ? (2 * both) / (wanted.size + made.size) : 0;")  # fmt: skip
    return Result({"type": "javascript", "code": code, "threshold": given_or(check.threshold, 1.0)})


def skill_used(check: Check, at: Workshop) -> Result | None:
    value = check.value
    if isinstance(value, dict):
        value = value.get("name") or value.get("pattern")
    names = [name for name in words_of(value, several=False) if name.strip()]
    if not names:
        return None
    at.notes.differs("`skill-used`: a skill is used if the agent calls its tool `Skill` for it")
    parts = [{"type": "tool_calls", "arguments": {"Skill": {"skill": name}}} for name in names]
    return Result(parts[0] if len(parts) == 1 else {"type": "all_of", "scorers": parts})


def valid_calls(check: Check, at: Workshop) -> Result:
    arguments = {"tools": at.tools}
    return Result({"type": "python", "function": at.code.function("calls_are_valid"), "arguments": arguments})


def guardrails(check: Check, at: Workshop) -> Result:
    at.notes.differs("`guardrails`: an answer that the provider's filter stopped is a failure here, and no answer")
    code = "context.finish_reason !== 'content_filter' && context.finish_reason !== 'guardrail_intervened'"
    return Result({"type": "javascript", "code": code})


def spans(check: Check, at: Workshop) -> Result | None:
    """Return a check of the spans that a provider sends while it answers."""
    value = check.value if isinstance(check.value, dict) else {}
    function, keys = _SPANS[check.kind]
    arguments = {key: value[key] for key in keys if isinstance(value.get(key), int | float | str)}
    if check.kind == "trace-span-duration" and "max" not in arguments:
        return None
    at.notes.differs(
        "checks of spans see those that a provider in Python or JavaScript sends as OTLP over HTTP to the port of "
        "`tracing` (4318); without any, an answer is unscored"
    )
    return Result({"type": "python", "function": at.code.function(function), "arguments": arguments})


_SPANS = {
    "trace-span-count": ("count_spans", ("pattern", "min", "max")),
    "trace-span-duration": ("spans_are_quick", ("pattern", "max", "percentile")),
    "trace-error-spans": ("spans_are_sound", ("pattern", "max_count", "max_percentage")),
}
CALLS: dict[str, Make] = {
    **dict.fromkeys(_SPANS, spans),
    "latency": latency,
    "cost": cost,
    "is-refusal": refusal,
    "finish-reason": finish_reason,
    "guardrails": guardrails,
    "trajectory:tool-used": tools_used,
    "trajectory:tool-sequence": tool_sequence,
    "trajectory:tool-args-match": tool_arguments,
    "trajectory:step-count": step_count,
    "tool-call-f1": tool_f1,
    "skill-used": skill_used,
    **dict.fromkeys(
        ("is-valid-openai-tools-call", "is-valid-openai-function-call", "is-valid-function-call"), valid_calls
    ),
}
