"""The first screen of a run: who leads, and every case at a glance. Small enough to be kept and sent."""

from __future__ import annotations

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import SCORE, ScoreTable, read_scores, sources_of
from fairtrial.analyse.tiers import Tiers, table_tiers
from fairtrial.stats.units import Measured

_MOST = 400  # values of a strip; with more cases, each is the mean of several
LOW = 0.5


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """One arm on all cases, hardest first: its mean score on each, or on each group of neighbours."""

    label: str
    values: list[Measured | None]
    low: int  # cases below 50


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Tiers of arms, and their scores on all cases; arms are in the order of the tiers."""

    tiers: Tiers
    strips: list[Strip]
    cases: int  # that any arm has a score for


def run_overview(run: Run) -> Overview:
    """Return the overview of a run."""
    return table_overview(read_scores(sources_of(run)))


def table_overview(scores: ScoreTable) -> Overview:
    """Return the overview of the arms of one or more runs."""
    tiers = table_tiers(scores)
    arms = {arm.label: arm for arm in scores.arms}
    order = [*(one.label for one in tiers.places), *tiers.unscored]
    means = {label: arms[label].means(SCORE) for label in order}
    hardest = _hardest_first(means)
    strips = [
        Strip(
            label=label,
            values=_grouped([means[label].get(key) for key in hardest]),
            low=sum(value < LOW for value in means[label].values()),
        )
        for label in order
    ]
    return Overview(tiers=tiers, strips=strips, cases=len(hardest))


def _hardest_first(means: dict[str, dict[str, float]]) -> list[str]:
    """Return the cases by their mean over arms."""
    sums: dict[str, list[float]] = {}
    for scores in means.values():
        for key, value in scores.items():
            sums.setdefault(key, []).append(value)
    return sorted(sums, key=lambda key: (sum(sums[key]) / len(sums[key]), key))


def _grouped(values: list[float | None]) -> list[float | None]:
    """Return at most `_MOST` values, each the mean of its neighbours."""
    if len(values) <= _MOST:
        return values
    groups: list[float | None] = []
    for number in range(_MOST):
        part = values[len(values) * number // _MOST : len(values) * (number + 1) // _MOST]
        scored = [value for value in part if value is not None]
        groups.append(sum(scored) / len(scored) if scored else None)
    return groups
