"""Assertions about a call and what an agent did: time, cost, tools."""

from __future__ import annotations

import json

from fairtrial.tracks.interchange.importers._promptfoo.assertion import Assertion, Converted, Make, named

_SPANS = {
    "trace-span-count": ("count_spans", ("pattern", "min", "max")),
    "trace-span-duration": ("spans_are_quick", ("pattern", "max", "percentile")),
    "trace-error-spans": ("spans_are_sound", ("pattern", "max_count", "max_percentage")),
}


def finish_reason(check: Assertion) -> Converted:
    return Converted({"type": "javascript", "code": f"context.finish_reason === {json.dumps(check.text)}"})


def tools_used(check: Assertion) -> Converted | None:
    limits = check.limits()
    names = check.texts
    if isinstance(check.value, dict):
        names = [str(named(check.value))] if named(check.value) else []
    if not names:
        return None
    if limits.get("max") == 0:
        return Converted({"type": "tool_calls", "forbidden": names})
    return Converted({"type": "tool_calls", "names": names, **limits})


def tool_sequence(check: Assertion) -> Converted | None:
    value = check.value if isinstance(check.value, dict) else {"steps": check.value}
    steps = [str(named(step)) for step in value.get("steps") or []]
    if not steps:
        return None
    order = "exact" if value.get("mode") == "exact" else "in_order"
    return Converted({"type": "tool_calls", "names": steps, "order": order})


def tool_arguments(check: Assertion) -> Converted | None:
    value = check.settings
    name, arguments = named(value), value.get("args", value.get("arguments"))
    if not name or not isinstance(arguments, dict):
        return None
    if value.get("mode") == "exact":
        check.at.notes.differs("`trajectory:tool-args-match` with `mode: exact`: further arguments are allowed here")
    return Converted({"type": "tool_calls", "arguments": {str(name): arguments}})


def step_count(check: Assertion) -> Converted | None:
    kind, limits = str(check.settings.get("type") or ""), check.limits()
    if not limits:
        return None
    if kind not in ("", "tool", "command"):
        check.at.notes.differs(
            f"`trajectory:step-count` of `{kind}`: steps of this kind are the spans that the provider sends, by name"
        )
    return check.by_function("count_steps", kind=kind, pattern=str(check.settings.get("pattern") or "*"), **limits)


def tool_f1(check: Assertion) -> Converted:
    code = (f"const wanted = new Set({json.dumps(check.words)}), made = new Set(tool_calls.map((call) => call.tool));\n"
            "const both = [...made].filter((name) => wanted.has(name)).length;\n"
            "return both ? (2 * both) / (wanted.size + made.size) : 0;")  # fmt: skip
    return Converted({"type": "javascript", "code": code, "threshold": check.limit(1.0)})


def skill_used(check: Assertion) -> Converted | None:
    value = named(check.value)
    names = [name for name in check._replace(value=value).texts if name.strip()]
    if not names:
        return None
    check.at.notes.differs("`skill-used`: a skill is used if the agent calls its tool `Skill` for it")
    parts = [{"type": "tool_calls", "arguments": {"Skill": {"skill": name}}} for name in names]
    return Converted(parts[0] if len(parts) == 1 else {"type": "all_of", "scorers": parts})


def guardrails(check: Assertion) -> Converted:
    check.at.notes.differs(
        "`guardrails`: an answer that the provider's filter stopped is a failure here, and no answer"
    )
    code = "context.finish_reason !== 'content_filter' && context.finish_reason !== 'guardrail_intervened'"
    return Converted({"type": "javascript", "code": code})


def spans(check: Assertion) -> Converted | None:
    """Return a check of the spans that a provider sends while it answers."""
    function, keys = _SPANS[check.kind]
    arguments = {key: check.settings[key] for key in keys if isinstance(check.settings.get(key), int | float | str)}
    if check.kind == "trace-span-duration" and "max" not in arguments:
        return None
    check.at.notes.differs(
        "checks of spans see those that a provider in Python or JavaScript sends as OTLP over HTTP to the port of "
        "`tracing` (4318); without any, an answer is unscored"
    )
    return check.by_function(function, **arguments)


CALLS: dict[str, Make] = {
    **dict.fromkeys(_SPANS, spans),
    "latency": lambda check: Converted({"type": "latency", "max": check.limit(0)}),
    "cost": lambda check: Converted({"type": "cost", "max": check.limit(0)}),
    "is-refusal": lambda check: Converted({"type": "refusal"}),
    "finish-reason": finish_reason,
    "guardrails": guardrails,
    "trajectory:tool-used": tools_used,
    "trajectory:tool-sequence": tool_sequence,
    "trajectory:tool-args-match": tool_arguments,
    "trajectory:step-count": step_count,
    "tool-call-f1": tool_f1,
    "skill-used": skill_used,
    **dict.fromkeys(
        ("is-valid-openai-tools-call", "is-valid-openai-function-call", "is-valid-function-call"),
        lambda check: check.by_function("calls_are_valid", tools=check.providers.offered),
    ),
}
