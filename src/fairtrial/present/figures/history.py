"""Arms over time: the score of every run, with its date and its interval."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from fairtrial.analyse.summary import ArmSummary
from fairtrial.present.charts import Curve, curves, small_curves
from fairtrial.present.charts.marks import Interval, scaled
from fairtrial.present.charts.svg import safe

_MOST_LINES = 6  # in one chart; more arms get a small chart each
_MOST_ARMS = 24


class Measurement(NamedTuple):
    """One arm in one run: the time, the value and its interval as shown, and the address of the run."""

    at: float
    value: float
    ci: Interval | None
    href: str


def measured(arm: ArmSummary, metric: str, at: float, href: str) -> Measurement | None:
    """Return the score of an arm in points, or a metric on its own scale; None if the run has none."""
    if not metric:
        mean, bounds, factor = arm.aggregate.mean, arm.aggregate.ci95, 100.0
    else:
        found = arm.metrics.get(metric)
        mean, bounds, factor = (found.mean, found.ci95, 1.0) if found else (None, None, 1.0)
    if mean is None:
        return None
    return Measurement(at, factor * mean, scaled(bounds, factor), href)


def history_figure(
    history: Mapping[str, Sequence[Measurement]], leading: Collection[str], *, metric: str = ""
) -> tuple[Markup, int]:
    """Return arms over time and how many are not shown; arms of a single run are a point next to the others' lines."""
    shown = list(history.items())[:_MOST_ARMS]
    lines = [Curve(arm, points, "lead" if arm in leading else "") for arm, points in shown]
    within = None if metric else (0.0, 100.0)
    drawn = curves(lines, within=within) if len(lines) <= _MOST_LINES else small_curves(lines, within=within)
    return safe(drawn), len(history) - len(shown)
