"""What a model answered: JSON somewhere in its text, and everything that is wrong with it, each as its own finding."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

_FENCE = re.compile(r"```[a-zA-Z0-9]*\s*\n(.*?)(?:```|\Z)", re.DOTALL)
_MOST_VAIN = 200  # braces that begin nothing: nobody answers like that
_STATUSES = ("optimal", "infeasible", "timeout")
_DECODER = json.JSONDecoder(parse_constant=float)  # NaN and Infinity are read, and then found


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as understood. `findings` name what is wrong with its form; `x` is None without a usable point."""

    x: tuple[float, ...] | None
    objective: float | None
    status: str | None
    violations: float | None  # the largest that it claims
    findings: tuple[str, ...]
    only_json: bool  # nothing but the object was written

    @property
    def follows(self) -> bool:
        """Whether it did what the format asks for."""
        return not self.findings


def read_answer(text: str, n: int, *, truncated: bool = False) -> Answered:
    """Find the object and check it. A cut-off answer is recognised, whether or not something can be read in it."""
    found, clean = _object(text)
    if found is None:
        reason = "truncated" if truncated or _looks_cut(text) else "no_json"
        return _nothing((reason,))
    findings = ["truncated"] if truncated else []
    status = _status(found, findings)
    x = _point(found, n, findings, absent=status == "infeasible")
    objective = _number(found.get("objective_value"))
    if "objective_value" not in found:
        findings.append("missing_objective_value")
    elif objective is None and not (status == "infeasible" and found["objective_value"] is None):
        findings.append("objective_not_a_number")
    return Answered(
        x=x,
        objective=objective,
        status=status,
        violations=_claimed(found.get("constraint_violations")),
        findings=tuple(findings),
        only_json=clean,
    )


def _nothing(findings: tuple[str, ...]) -> Answered:
    return Answered(x=None, objective=None, status=None, violations=None, findings=findings, only_json=False)


def _object(text: str) -> tuple[dict[str, Any] | None, bool]:
    """The last object with an answer's keys, in fences or prose; and whether nothing else was written."""
    stripped = text.strip()
    whole = _decode(stripped)
    if isinstance(whole, dict):
        return whole, True
    candidates = [item for block in (*_FENCE.findall(text), text) for item in _objects(block)]
    for wanted in (_is_point, _is_status, lambda item: "x" in item or "objective_value" in item, lambda _: True):
        if chosen := [item for item in candidates if wanted(item)]:
            return chosen[-1], False
    return None, False


def _is_point(item: dict[str, Any]) -> bool:
    return isinstance(item.get("x"), list) and "objective_value" in item


def _is_status(item: dict[str, Any]) -> bool:
    return "x" in item and str(item.get("status", "")).strip().lower() == "infeasible"


def _decode(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _objects(text: str) -> list[dict[str, Any]]:
    """Every complete object in a text, from left to right; what is inside another one is not found again."""
    found = []
    position, vain = text.find("{"), 0
    while position >= 0 and vain < _MOST_VAIN:
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            end, vain = position + 1, vain + 1
        else:
            if isinstance(value, dict):
                found.append(value)
        position = text.find("{", end)
    return found


def _looks_cut(text: str) -> bool:
    """An object that begins and never ends."""
    start = text.find("{")
    return start >= 0 and text.count("{", start) > text.count("}", start)


def _status(found: dict[str, Any], findings: list[str]) -> str | None:
    status = found.get("status")
    if status is None:
        return None
    if not isinstance(status, str) or status.strip().lower() not in _STATUSES:
        findings.append("unknown_status")
        return None
    return status.strip().lower()


def _point(found: dict[str, Any], n: int, findings: list[str], *, absent: bool) -> tuple[float, ...] | None:
    """The point, if it is one: a list of n finite numbers."""
    if found.get("x") is None and absent:
        return None
    if "x" not in found:
        findings.append("missing_x")
        return None
    values = found["x"]
    if not isinstance(values, list):
        findings.append("x_not_a_list")
        return None
    wrong = [value for value in values if _number(value) is None]
    if any(isinstance(value, str) for value in values):
        findings.append("strings_in_x")
    elif any(isinstance(value, float) for value in wrong):
        findings.append("not_finite")
    elif wrong:
        findings.append("wrong_types_in_x")
    if len(values) != n:
        findings.append("wrong_length")
    if wrong or len(values) != n:
        return None
    return tuple(float(value) for value in values)


def _number(value: Any) -> float | None:
    """A finite number; True is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _claimed(value: Any) -> float | None:
    """The largest violation that is claimed: a number, a list, or an object of them."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        numbers = [abs(number) for item in value if (number := _number(item)) is not None]
        return max(numbers, default=0.0) if len(numbers) == len(value) else None
    number = _number(value)
    return None if number is None else abs(number)
