"""Two arms: their differences case by case, and by kind of case."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from fairtrial.analyse.comparison import Comparison, Comparisons
from fairtrial.core.formatting import Scale
from fairtrial.present.charts import balance, histogram, small_forest
from fairtrial.present.charts.marks import scaled
from fairtrial.present.charts.svg import safe
from fairtrial.present.figures.leaders import TONES, Figure, Links, difference_row
from fairtrial.present.words.changes import pair_name
from fairtrial.present.words.verdicts import WORDS

_MOST_PAIRS = 60


def difference_histogram(pair: Comparison, counts: Sequence[int], *, largest: float, sign: int = 1) -> Markup:
    """Return how many cases differ by how much (up to `largest`), and on how many each arm is ahead."""
    scale = Scale(pair.metric)
    drawn = histogram(
        counts,
        mean=None if pair.difference is None else scale.factor * pair.difference,
        ci=scaled(pair.ci95, scale.factor),
        a=pair.a,
        b=pair.b,
        scale=scale.factor * largest,
        lower_is_better=sign < 0,
    )
    return safe(drawn + balance(pair.ahead, pair.tied, pair.behind))


def pair_differences(comparisons: Comparisons, links: Links) -> Markup:
    """Return the difference of every pair, first minus second, the largest first."""
    rows = [
        difference_row(
            pair_name(pair, comparisons),
            pair.metric,
            pair,
            tone=TONES[pair.verdict],
            rank=WORDS[pair.verdict],
            href=links.pair(pair.a, pair.b),
            margin=comparisons.margin,
        )
        for pair in sorted(comparisons.pairs, key=lambda pair: -abs(pair.difference or 0.0))[:_MOST_PAIRS]
    ]
    return safe(small_forest(rows, name="Pair", number_name="Difference", zero=0.0))


def kind_differences(pair: Comparison) -> list[Figure]:
    """Return the difference on each kind of case, an attribute at a time."""
    figures = []
    for by in dict.fromkeys(group.by for group in pair.groups):
        rows = [
            difference_row(group.value, pair.metric, group, tone=TONES[group.verdict], rank=str(group.count))
            for group in pair.groups
            if group.by == by
        ]
        html = safe(small_forest(rows, name=by, number_name="Difference", zero=0.0))
        figures.append(Figure(by, html, _kinds_words(pair, by)))
    return figures


def _kinds_words(pair: Comparison, by: str) -> str:
    groups = [group for group in pair.groups if group.by == by]
    decided = [group for group in groups if group.verdict in ("better", "worse")]
    if not decided:
        return "None of these groups decides by itself: each has too few cases, or the arms are alike."
    names = ", ".join(group.value for group in decided)
    rest = len(groups) - len(decided)
    return f"Decided: {names}." + (f" The other {rest}: too few cases to tell." if rest else "")
