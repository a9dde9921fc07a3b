"""What of a document must stay: masks for what differs from run to run, and the differences that are left."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

# Times and versions.
VARYING = {
    *("latency_ms", "first_token_ms", "waited_ms", "time", "total_time", "working_time", "seconds", "began", "created"),
    *(
        "started_at",
        "created_at",
        "completed_at",
        "ended_at",
        "imported_at",
        "evaluation_timestamp",
        "retrieved_timestamp",
    ),
    *("packages", "platform", "python", "version", "checked", "sheet", "fairtrial"),
}
# Sentences may be worded better at any time; that there is one stays.
PROSE = {
    *(
        "advice",
        "baseline",
        "citation",
        "description",
        "failures",
        "failure_message",
        "headline",
        "message",
        "methods",
        "note",
    ),
    *("notes", "reason", "recommendation", "unknown", "unscored_message", "warnings", "tried"),
}
_LONG = 200  # characters from which on a hash is recorded
_MASKS = ("~text", "~number", "~flag")


def normal(value: Any, key: str = "") -> Any:
    """Return a document without times, versions and sentences, with hashes for long texts."""
    if isinstance(value, dict):
        return {name: normal(inner, key if key in VARYING | PROSE else name) for name, inner in value.items()}
    if isinstance(value, list):
        return [normal(inner, key) for inner in value]
    if key in VARYING or (key in PROSE and isinstance(value, str) and " " in value):
        return mask(value)
    if isinstance(value, str) and len(value) > _LONG:
        return f"~sha256 {hashlib.sha256(value.encode()).hexdigest()[:20]}"
    return round(value, 9) if isinstance(value, float) else value


def mask(value: Any) -> Any:
    """Return what stands for any value of this type."""
    if value is None or isinstance(value, dict | list) or (isinstance(value, str) and value in _MASKS):
        return value
    return "~flag" if isinstance(value, bool) else "~text" if isinstance(value, str) else "~number"


def types_of(value: Any) -> Any:
    """Return only keys and types: of a document whose values are data that grows, such as what is known about models."""
    if isinstance(value, dict):
        return {key: types_of(inner) for key, inner in value.items()}
    return {"each": types_of(value[0])} if isinstance(value, list) and value else mask(value)


def common(one: Any, other: Any) -> Any:
    """Return a document of which two recordings agree, with masks where they do not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: common(one[key], other[key]) for key in one if key in other}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [common(first, second) for first, second in zip(one, other, strict=True)]
    return one if one == other else mask(one)


def with_repetitions(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what commands printed, each document once: `run` prints what `show` does."""
    made: list[dict[str, Any]] = []
    for outcome in outcomes:
        again = next((before for before in made if before.get("printed") == outcome["printed"]), None)
        long = len(repr(outcome["printed"])) > _LONG
        made.append({**outcome, "printed": f"~as {again['command']}"} if again and long else outcome)
    return made


def without_repetitions(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was recorded, with every document in full."""
    printed = {f"~as {outcome['command']}": outcome["printed"] for outcome in reversed(outcomes)}
    return [{**outcome, "printed": printed.get(str(outcome["printed"]), outcome["printed"])} for outcome in outcomes]


def differences(recorded: Any, present: Any, path: str = "") -> Iterator[str]:
    """Yield where a document is not as recorded; further keys are no difference."""
    if isinstance(recorded, dict) and isinstance(present, dict):
        for key, value in recorded.items():
            if key in present:
                yield from differences(value, present[key], f"{path}.{key}")
            else:
                yield f"{path}.{key} is missing; it was {_short(value)}"
    elif isinstance(recorded, list) and isinstance(present, list):
        if len(recorded) != len(present):
            yield f"{path} has {len(present)} entries; there were {len(recorded)}: {_short(recorded)}"
            return
        for number, (was, now) in enumerate(zip(recorded, present, strict=True)):
            yield from differences(was, now, f"{path}[{number}]")
    elif not _fits(recorded, present):
        yield f"{path} is {_short(present)}; it was {_short(recorded)}"


def _fits(recorded: Any, present: Any) -> bool:
    if isinstance(recorded, str) and recorded in _MASKS:
        return mask(present) == recorded
    if isinstance(recorded, bool) or isinstance(present, bool) or not isinstance(recorded, int | float):
        return type(recorded) is type(present) and recorded == present
    return isinstance(present, int | float) and math.isclose(recorded, present, rel_tol=1e-6, abs_tol=1e-6)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:80]}…"
