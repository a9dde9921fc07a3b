"""Each arm in more detail: its metrics, its use of tools, what its answers took, and where its noise comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from fairtrial.analyse.figures.leaders import TONES, Figure, Links
from fairtrial.analyse.lift import Lift
from fairtrial.analyse.planning import ArmVariance
from fairtrial.analyse.spread import Spread
from fairtrial.analyse.summary import ArmSummary, Metric, RunSummary
from fairtrial.analyse.tiers import Tiers
from fairtrial.analyse.wording.comparisons import Scale
from fairtrial.analyse.wording.runs import milliseconds, money, number, scale_words
from fairtrial.analyse.wording.tiers import interval_words, signs
from fairtrial.charts import BarRow, Box, ForestRow, bars, boxes, shares, small_forest
from fairtrial.charts.marks import Interval, Tone
from fairtrial.charts.svg import safe

_MOST_ARMS = 20  # rows that a card has room for
_MOST_METRICS = 6
_MOST_TOOLS = 20


class ToolsSection(NamedTuple):
    """Whether tools help: a sentence, the gain of each condition, and how the tools were used."""

    words: str
    lifts: list[Figure]
    use: Markup
    tools: Markup


def tools_section(summary: RunSummary, tiers: Tiers, links: Links) -> ToolsSection | None:
    """Return what a run with tools shows about them; None for a run without."""
    equipped = [arm for arm in summary.arms if arm.tools is not None]
    if not equipped:
        return None
    names = {arm.arm for arm in equipped}
    lifts = [lift for lift in summary.lifts if lift.arm in names and lift.paired.difference is not None]
    figures = []
    for metric in dict.fromkeys(lift.metric for lift in lifts):
        own = [lift for lift in lifts if lift.metric == metric][:_MOST_ARMS]
        rows = [_lift_row(lift, tiers, links) for lift in own]
        html = small_forest(rows, name="Condition", number_name="Gain", zero=0.0)
        figures.append(Figure((metric or "score").replace("_", " "), safe(html)))
    return ToolsSection(
        _help_words([lift for lift in lifts if not lift.metric], tiers),
        figures[:_MOST_METRICS],
        _use(equipped, links),
        _tools(equipped),
    )


def _lift_row(lift: Lift, tiers: Tiers, links: Links) -> ForestRow:
    paired, scale = lift.paired, Scale(lift.metric)
    return ForestRow(
        lift.arm,
        scale.factor * (paired.difference or 0.0),
        None if paired.ci95 is None else (scale.factor * paired.ci95[0], scale.factor * paired.ci95[1]),
        signs(scale.signed(paired.difference)),
        interval_words(paired.ci95, lift.metric) if paired.ci95 else "",
        rank=f"against {lift.baseline}",
        href=links.pair(lift.arm, lift.baseline),
        tone=_tone(lift, tiers),
    )


def _tone(lift: Lift, tiers: Tiers) -> Tone:
    """Return the verdict of `compare` for the primary metric; for others, whether the interval leaves out 0."""
    if lift.metric == tiers.metric:
        for a, b in ((lift.arm, lift.baseline), (lift.baseline, lift.arm)):
            if (distance := tiers.distances.get(a, {}).get(b)) is not None:
                tone = TONES[distance.verdict]
                opposite: dict[Tone, Tone] = {"lead": "behind", "behind": "lead"}
                return tone if a == lift.arm else opposite.get(tone, tone)
    bounds = lift.paired.ci95
    if bounds is None or bounds[0] <= 0 <= bounds[1]:
        return "unsure"
    worst, best = lift.scale
    lower_is_better = best is not None and (worst is None or best < worst)
    return "lead" if (bounds[0] > 0) != lower_is_better else "behind"


def _help_words(lifts: Sequence[Lift], tiers: Tiers) -> str:
    """Say whether the tools change the score beyond chance."""
    if not lifts:
        return "There is no condition without tools to compare with."
    tones = [_tone(lift, tiers) for lift in lifts]
    if len(lifts) == 1:
        paired = lifts[0].paired
        size = abs(100 * (paired.difference or 0.0))
        points = f"{size:.{0 if size >= 3 else 1}f} points"
        bounds = f" (95 % CI {interval_words(paired.ci95)})" if paired.ci95 else ""
        return {
            "lead": f"Yes: with them, answers score {points} more{bounds}.",
            "behind": f"No: with them, answers score {points} less{bounds}.",
            "same": f"They make no relevant difference{bounds}.",
        }.get(
            tones[0], f"Too few cases to tell: {points} {'more' if (paired.difference or 0) >= 0 else 'less'}{bounds}."
        )
    counts = [f"{tones.count('lead')} of {len(lifts)} arms score more with them"]
    if "behind" in tones:
        counts.append(f"{tones.count('behind')} less")
    if "unsure" in tones:
        counts.append(f"{tones.count('unsure')} cannot be told")
    return f"{', '.join(counts)}."


def _use(arms: Sequence[ArmSummary], links: Links) -> Markup:
    """Return in which share of its answers each arm used a tool."""
    rows = []
    for arm in arms[:_MOST_ARMS]:
        tools = arm.tools
        assert tools is not None
        more = f"scores {number(tools.when_used.mean)} there" if 0 < tools.used < tools.answers else ""
        if tools.marked:
            more = f"{more}, {tools.marked} lack required use".removeprefix(", ")
        shown = f"{tools.used} of {tools.answers}" if tools.answers else "not reported"
        parts = [(tools.rate, "l2", f"{arm.arm}|{shown} answers used a tool")]
        rows.append(BarRow(arm.arm, parts, shown, more, links.arm(arm.arm)))
    return safe(bars(rows, name="Answers that used a tool", number_name="", whole=1.0))


def _tools(arms: Sequence[ArmSummary]) -> Markup:
    """Return how often each tool was called, and how often that failed."""
    several = len(arms) > 1
    rows = []
    for arm in arms:
        for tool, (calls, errors) in arm.tools.tools.items() if arm.tools else ():
            name = f"{tool} ({arm.arm})" if several else tool
            failed = f"{errors} failed ({100 * errors / calls:.0f} %)" if errors and calls else "none failed"
            parts = [
                (float(calls - errors), "l2", f"{name}|{calls - errors} calls that worked"),
                (float(errors), "behind", f"{name}|{errors} calls that failed"),
            ]
            rows.append(BarRow(name, parts, f"{calls} call{'' if calls == 1 else 's'}", failed))
    rows.sort(key=lambda row: -sum(amount for amount, _, _ in row.parts))
    return safe(bars(rows[:_MOST_TOOLS], name="Calls by tool", number_name="")) if rows else safe("")


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
        rows = [_metric_row(arm, metric, links) for arm, metric in list(found.items())[:_MOST_ARMS]]
        if rows:
            scale = next(iter(found.values())).scale
            html = small_forest(rows, name="Arm", number_name="Mean", within=_ends(scale))
            figures.append(Figure(name.replace("_", " "), safe(html), scale_words(scale)))
    return figures


def _ends(scale: tuple[float | None, float | None]) -> Interval:
    low, high = sorted(end for end in scale if end is not None)
    return low, high


def _metric_row(arm: str, metric: Metric, links: Links) -> ForestRow:
    digits = 2 if max(map(abs, _ends(metric.scale))) <= 10 else 1
    bounds = "" if metric.ci95 is None else signs(f"{metric.ci95[0]:.{digits}f} to {metric.ci95[1]:.{digits}f}")
    return ForestRow(arm, metric.mean, metric.ci95, signs(f"{metric.mean:.{digits}f}"), bounds, href=links.arm(arm))


def spread_figures(spreads: Mapping[str, Spread], order: Sequence[str], links: Links) -> list[Figure]:
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
        figures.append(Figure("Latency", safe(boxes(latency, name="Median")), "seconds per answer"))
    if cost:
        figures.append(Figure("Cost", safe(boxes(cost, name="Median", unit="$")), "of 1,000 such answers"))
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
