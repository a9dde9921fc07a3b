"""A judge's marks against the right ones."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from fairtrial.core.formatting import number, signs
from fairtrial.judging.calibration import Calibration, CalibrationSummary, SampleResult
from fairtrial.present.charts import Curve, Point, agreement, curves, small_agreement
from fairtrial.present.charts.svg import safe


def judge_figure(calibration: Calibration) -> Markup:
    """Return the marks of all samples; a line is the spread over repeats."""
    points = _points(calibration)
    return safe(agreement(points, x_name="right mark", y_name="the judge’s mark"))


def small_judge_figure(calibration: Calibration) -> Markup:
    """Return the same as a small picture."""
    summary = calibration.summary
    points = _points(calibration)
    says = f"{summary.judge}: {summary.passed} of {summary.total} marks are close to the right one"
    return safe(small_agreement(points, says=says))


def _points(calibration: Calibration) -> list[Point]:
    return [_point(sample, place) for place, sample in enumerate(calibration.samples, 1) if sample.actual is not None]


def _point(sample: SampleResult, place: int) -> Point:
    actual = sample.actual or 0.0
    spread = sample.spread or 0.0
    low, high = max(0.0, actual - spread), min(1.0, actual + spread)
    error = signs(f"{100 * (sample.error or 0.0):+.0f}")
    tip = f"{sample.id}|given {number(actual, 0)}, right {number(sample.expected, 0)} ({error})"
    return Point(
        sample.id,
        100 * sample.expected,
        100 * actual,
        (100 * low, 100 * high) if spread else None,
        f"#sample-{place}",
        tip,
        "lead" if sample.within_tolerance else "behind",
    )


def error_history(past: Sequence[tuple[str, CalibrationSummary]]) -> Markup:
    """Return the mean error of one judge over time; each calibration is given with its address."""
    points = [
        (summary.created_at, 100 * summary.mean_absolute_error, None, href)
        for href, summary in past
        if summary.mean_absolute_error is not None
    ]
    return safe(curves([Curve("mean error", points)])) if len(points) > 1 else safe("")
