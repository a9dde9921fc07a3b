"""Each arm in more detail: its metrics, what its answers took, and where its noise comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from fairtrial.analyse.spread import ArmSpread
from fairtrial.analyse.summary import Metric, RunSummary
from fairtrial.analyse.variance import ArmVariance
from fairtrial.core.formatting import milliseconds, money, signs
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.present.charts import Box, ForestRow, boxes, shares, small_forest
from fairtrial.present.charts.marks import Interval
from fairtrial.present.charts.svg import safe
from fairtrial.present.figures.leaders import Figure, Links, best_of
from fairtrial.present.words.runs import scale_words, within_brief, within_legend

_MOST_ARMS = 20  # rows that a card has room for
_MOST_METRICS = 6
_MOST_TOOLS = 20


def drawn_metrics(summary: RunSummary) -> list[str]:
    """Return the metrics that are drawn: those with a known scale."""
    scales = {name: metric.scale for arm in summary.arms for name, metric in arm.metrics.items()}
    return [name for name, scale in scales.items() if None not in scale][:_MOST_METRICS]


def metric_figures(summary: RunSummary, order: Sequence[str], links: Links) -> list[Figure]:
    """Return every metric besides the score on its own scale, arms in the order of the ranking."""
    arms = {arm.arm: arm for arm in summary.arms}
    figures = []
    for name in drawn_metrics(summary):
        found = {arm: arms[arm].metrics[name] for arm in order if arm in arms and name in arms[arm].metrics}
        rows = [_metric_row(name, arm, metric, links) for arm, metric in list(found.items())[:_MOST_ARMS]]
        if rows:
            scale = next(iter(found.values())).scale
            html = small_forest(rows, name="Arm", number_name="Mean", within=_ends(scale))
            note = ", ".join(filter(None, (scale_words(scale), within_legend(name, found.values()))))
            figures.append(Figure(name.replace("_", " "), safe(html), note))
    return figures


def _ends(scale: tuple[float | None, float | None]) -> Interval:
    low, high = sorted(end for end in scale if end is not None)
    return low, high


def _metric_row(name: str, arm: str, metric: Metric, links: Links) -> ForestRow:
    digits = 2 if max(map(abs, _ends(metric.scale))) <= 10 else 1
    bounds = "" if metric.ci95 is None else signs(f"{metric.ci95[0]:.{digits}f} to {metric.ci95[1]:.{digits}f}")
    spread = within_brief(name, metric, lambda value: f"{value:.{digits}f}")
    shown = signs(f"{metric.mean:.{digits}f}")
    return ForestRow(arm, metric.mean, metric.ci95, shown, bounds, rank=spread, href=links.arm(arm))


def spread_figures(spreads: Mapping[str, ArmSpread], order: Sequence[str], links: Links) -> list[Figure]:
    """Return how long answers took and what they cost, as boxes."""
    latency, cost = [], []
    for arm in order:
        spread = spreads.get(arm)
        if spread is None:
            continue
        if spread.latency_ms is not None and spread.latency_ms[4] >= 1:
            p5, p25, p50, p75, p95 = (value / 1000 for value in spread.latency_ms)
            shown = milliseconds(spread.latency_ms[2])
            latency.append(Box(arm, (p5, p25, p50, p75, p95), shown, links.arm(arm)))
        if spread.cost_usd is not None and spread.cost_usd[4] > 0:
            p5, p25, p50, p75, p95 = (1000 * value for value in spread.cost_usd)
            cost.append(Box(arm, (p5, p25, p50, p75, p95), money(p50), links.arm(arm)))
    figures = []
    if latency:
        drawn = safe(boxes(latency[:MOST_ARMS], name="Median")) + best_of(len(latency))
        figures.append(Figure("Latency", drawn, "seconds per answer"))
    if cost:
        drawn = safe(boxes(cost[:MOST_ARMS], name="Median", unit="$")) + best_of(len(cost))
        figures.append(Figure("Cost", drawn, "of 1,000 such answers"))
    return figures


def variance_figure(arms: Sequence[ArmVariance]) -> Markup:
    """Return where the uncertainty of each arm comes from, as shares."""
    parts = ("differences between cases", "repeats of the same case", "judges")
    rows = [
        (arm.label, [arm.shares.get(name) or 0.0 for name in ("case", "repeat", "judge")])
        for arm in arms
        if any(arm.shares.values())
    ]
    return safe(shares(rows, parts)) if rows else safe("")
