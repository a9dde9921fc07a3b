"""What users' own scoring code may return, as a score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fairtrial.core.score import Score, Unscored

_MAX_SHOWN = 100


def as_score(result: Any) -> Score | Unscored:
    """Return the score that a function means: a bool, a number from 0 to 1, a Score, or a mapping.

    A mapping has `score`, or is several numbers by name: then these are metrics, and the score is their mean.
    """
    if isinstance(result, Score | Unscored):
        return result
    if _is_share(result):
        return Score(value=float(result), raw=float(result))
    if isinstance(result, Mapping) and _is_share(result.get("score", result.get("pass"))):
        return _from_mapping(result)
    if isinstance(result, Mapping) and result and not {"score", "pass"} & result.keys() and _are_numbers(result):
        return _from_metrics(result)
    shown = f"{result!r}"[:_MAX_SHOWN]
    return Unscored(kind="range", message=f"the function returned {shown}, not a number from 0 to 1")


def _from_mapping(result: Mapping[str, Any]) -> Score | Unscored:
    """Read `score` with `notes` and `metrics`, or `pass` and `reason`; what has not passed is wrong."""
    passed, score = result.get("pass"), result.get("score")
    value = float(passed if score is None else score)  # type: ignore[arg-type]  # one of them is a number
    if passed is False:
        value = 0.0
    notes = result.get("notes", result.get("reason", ""))
    metrics = result.get("metrics")
    if metrics and not _are_numbers(metrics):
        return Unscored(kind="range", message="the function returned `metrics` that are not numbers by name")
    numbers = {str(name): float(number) for name, number in (metrics or {}).items()}
    return Score(value=value, raw=value, notes="" if notes is None else str(notes), metrics=numbers)


def _from_metrics(result: Mapping[str, Any]) -> Score | Unscored:
    """Read several metrics by name; without a score of its own, an answer has their mean."""
    metrics = {str(name): float(number) for name, number in result.items()}
    outside = next((name for name, number in metrics.items() if not 0 <= number <= 1), None)
    if outside is not None:
        message = f"the function returned no `score`, and `{outside}` is not a number from 0 to 1: add `score`"
        return Unscored(kind="range", message=message)
    mean = sum(metrics.values()) / len(metrics)
    return Score(value=mean, raw=mean, notes=f"mean of {', '.join(metrics)}", metrics=metrics)


def _is_share(value: Any) -> bool:
    return isinstance(value, bool | int | float) and 0 <= value <= 1


def _are_numbers(metrics: Any) -> bool:
    return isinstance(metrics, Mapping) and all(
        isinstance(number, bool | int | float) and math.isfinite(number) for number in metrics.values()
    )
