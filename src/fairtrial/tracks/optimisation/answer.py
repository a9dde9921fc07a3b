"""Reading a model's answer: find the JSON object in its text and report everything wrong with it as findings."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from fairtrial.tracks.optimisation.problem import NOTHING_KNOWN, Baseline

_FENCE = re.compile(r"```[a-zA-Z0-9]*\s*\n(.*?)(?:```|\Z)", re.DOTALL)
_MAX_FAILED_BRACES = 200  # braces that start no object; real answers have far fewer
_SHORTEST_LINE = 8  # characters; shorter lines may be in any answer
STEPS = ("JSON", "keys", "length", "types", "nothing else")
_FAULTS = (
    ("missing_x", "missing_objective_value"),
    ("wrong_length", "x_not_a_list"),
    ("strings_in_x", "not_finite", "wrong_types_in_x", "objective_not_a_number", "unknown_status"),
)
_STATUSES = ("optimal", "infeasible", "timeout")
_DECODER = json.JSONDecoder(parse_constant=float)  # NaN and Infinity are parsed, then reported as findings


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed answer. `findings` name what is wrong with its format; `x` is None without a usable point."""

    x: tuple[float, ...] | None = None
    objective: float | None = None
    status: str | None = None
    violations: float | None = None  # the largest that the answer claims
    findings: tuple[str, ...]
    only_json: bool = False  # whether the answer is nothing but the object
    echo: bool = False  # whether it repeats the question instead of answering
    steps: int = 0  # of STEPS, how many were taken before the first fault

    @property
    def follows(self) -> bool:
        """Whether the answer follows the requested format."""
        return not self.findings


def read_answer(text: str, n: int, *, truncated: bool = False, prompt: str = "") -> Answered:
    """Find the object in an answer and check it. A cut-off answer is recognised even if nothing can be parsed.

    Args:
        prompt: What was asked: lines that only repeat it are not part of the answer.
    """
    own, repeated = without_prompt(text, prompt)
    answer, only_json = _object(own)
    only_json = only_json and own.strip() == text.strip()
    if answer is None:
        reason = "echo" if repeated else "truncated" if truncated or _looks_truncated(own) else "no_json"
        return Answered(findings=(reason,), echo=repeated)
    findings = ["truncated"] if truncated else []
    status = _status(answer, findings)
    x = _point(answer, n, findings, absent=status == "infeasible")
    objective = _number(answer.get("objective_value"))
    if "objective_value" not in answer:
        findings.append("missing_objective_value")
    elif objective is None and not (status == "infeasible" and answer["objective_value"] is None):
        findings.append("objective_not_a_number")
    return Answered(
        x=x,
        objective=objective,
        status=status,
        violations=_claimed(answer.get("constraint_violations")),
        findings=tuple(findings),
        only_json=only_json,
        steps=_steps(findings, only_json=only_json),
    )


def _steps(findings: list[str], *, only_json: bool) -> int:
    """Return how far an answer keeps to the format; each step requires those before it."""
    for number, faults in enumerate(_FAULTS, 1):
        if any(finding in faults for finding in findings):
            return number
    return len(STEPS) if only_json else len(STEPS) - 1


def without_prompt(text: str, prompt: str) -> tuple[str, bool]:
    """Return a text without the lines of the prompt, and whether it has most of them."""
    lines = [line.strip() for line in prompt.splitlines() if len(line.strip()) >= _SHORTEST_LINE]
    found = [line for line in lines if line in text]
    if not found:
        return text, False
    for line in sorted(found, key=len, reverse=True):
        text = text.replace(line, "")
    return text, 2 * sum(map(len, found)) >= sum(map(len, lines))


def read_reference(text: str, name: str) -> Baseline:
    """Return a solution from a file in the format of an answer; raise ValueError if it is none."""
    answer, _ = _object(text)
    values = None if answer is None else answer.get("x")
    if answer is None or ("x" not in answer and "objective_value" not in answer):
        raise ValueError("it needs a JSON object with `x` and `objective_value`")
    findings: list[str] = []
    status = _status(answer, findings)
    x = _point(answer, len(values) if isinstance(values, list) else 0, findings, absent=status == "infeasible")
    objective = _number(answer.get("objective_value"))
    if status != "infeasible" and (x is None or objective is None):
        raise ValueError(f"`x` must be a list of numbers and `objective_value` a number ({', '.join(findings)})")
    return Baseline(
        **{
            **NOTHING_KNOWN,  # also not certified: whoever wrote the file says so, and nobody can check it
            "problem": name,
            "status": status if status in ("infeasible", "optimal") else "feasible",
            "x": x,
            "objective": objective,
            "bound": _number(answer.get("bound")),
            "solver": "baseline.json",
            "random_objective": _number(answer.get("random_objective")),
            "sense": sense if (sense := answer.get("sense")) in ("minimise", "maximise") else None,
        }
    )


def _object(text: str) -> tuple[dict[str, Any] | None, bool]:
    """Return the last object with an answer's keys, in fences or prose, and whether the text has nothing else."""
    stripped = text.strip()
    whole = _decode(stripped)
    if isinstance(whole, dict):
        return whole, True
    candidates = [item for block in (*_FENCE.findall(text), text) for item in _objects(block)]
    for matches in (_is_point, _is_status, lambda item: "x" in item or "objective_value" in item, lambda _: True):
        if chosen := [item for item in candidates if matches(item)]:
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
    """Return every complete object in a text, from left to right, without those nested in another."""
    objects = []
    position, failed = text.find("{"), 0
    while position >= 0 and failed < _MAX_FAILED_BRACES:
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            end, failed = position + 1, failed + 1
        else:
            if isinstance(value, dict):
                objects.append(value)
        position = text.find("{", end)
    return objects


def _looks_truncated(text: str) -> bool:
    """Return whether an object begins and never ends."""
    start = text.find("{")
    return start >= 0 and text.count("{", start) > text.count("}", start)


def _status(answer: dict[str, Any], findings: list[str]) -> str | None:
    status = answer.get("status")
    if status is None:
        return None
    if not isinstance(status, str) or status.strip().lower() not in _STATUSES:
        findings.append("unknown_status")
        return None
    return status.strip().lower()


def _point(answer: dict[str, Any], n: int, findings: list[str], *, absent: bool) -> tuple[float, ...] | None:
    """Return the point if it is a list of n finite numbers, else None."""
    if answer.get("x") is None and absent:
        return None
    if "x" not in answer:
        findings.append("missing_x")
        return None
    values = answer["x"]
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
    """Return a finite number, else None; booleans do not count."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _claimed(value: Any) -> float | None:
    """Return the largest claimed violation, given as a number, a list or an object of numbers."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        numbers = [abs(number) for item in value if (number := _number(item)) is not None]
        return max(numbers, default=0.0) if len(numbers) == len(value) else None
    number = _number(value)
    return None if number is None else abs(number)
