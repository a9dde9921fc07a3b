"""Two arms: their differences case by case, and by kind of case."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from fairtrial.analyse.comparison import Comparison
from fairtrial.analyse.figures.leaders import TONES, Figure
from fairtrial.analyse.wording.comparisons import Scale
from fairtrial.analyse.wording.tiers import interval_words, signs
from fairtrial.charts import ForestRow, balance, histogram, small_forest
from fairtrial.charts.svg import safe


def difference_histogram(pair: Comparison, differences: Sequence[float], *, sign: int = 1) -> Markup:
    """Return how many cases differ by how much, and on how many each arm is ahead."""
    scale = Scale(pair.metric)
    shown = [scale.factor * value for value in differences]
    largest = 100.0 if not pair.metric else max([abs(value) for value in shown] or [1.0]) or 1.0
    drawn = histogram(
        shown,
        mean=None if pair.difference is None else scale.factor * pair.difference,
        ci=None if pair.ci95 is None else (scale.factor * pair.ci95[0], scale.factor * pair.ci95[1]),
        a=pair.a,
        b=pair.b,
        scale=largest,
        lower_is_better=sign < 0,
    )
    return safe(drawn + balance(pair.ahead, pair.tied, pair.behind))


def kind_differences(pair: Comparison) -> list[Figure]:
    """Return the difference on each kind of case, an attribute at a time."""
    scale = Scale(pair.metric)
    figures = []
    for by in dict.fromkeys(group.by for group in pair.groups):
        rows = [
            ForestRow(
                group.value,
                None if group.difference is None else scale.factor * group.difference,
                None if group.ci95 is None else (scale.factor * group.ci95[0], scale.factor * group.ci95[1]),
                signs(scale.signed(group.difference)),
                interval_words(group.ci95, pair.metric) if group.ci95 else "",
                rank=str(group.count),
                tone=TONES[group.verdict],
            )
            for group in pair.groups
            if group.by == by
        ]
        html = safe(small_forest(rows, name=by, number_name="Difference", zero=0.0))
        figures.append(Figure(by, html, _kinds_words(pair, by)))
    return figures


def _kinds_words(pair: Comparison, by: str) -> str:
    """Say which kinds are decided."""
    groups = [group for group in pair.groups if group.by == by]
    decided = [group for group in groups if group.verdict in ("better", "worse")]
    if not decided:
        return "None of these groups decides by itself: each has too few cases, or the arms are alike."
    names = ", ".join(group.value for group in decided)
    rest = len(groups) - len(decided)
    return f"Decided: {names}." + (f" The other {rest}: too few cases to tell." if rest else "")
