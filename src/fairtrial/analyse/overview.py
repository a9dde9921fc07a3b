"""The first screen of a run: who leads, and every case at a glance. Small enough to be kept and sent."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from fairtrial.analyse.case_table import Floats, Ints
from fairtrial.analyse.leaderboard import Leaderboard, table_leaderboard
from fairtrial.analyse.price import Prices
from fairtrial.analyse.score_table import SCORE, ScoreTable, read_scores, sources_of
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.stats.units import Measured

_MOST = 400  # values of a strip; with more cases, each is the mean of several
LOW = 0.5


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """One arm on all cases, hardest first: its mean score on each, or on each group of neighbours."""

    label: str
    values: list[Measured | None]
    low: int  # cases below 50


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Leaderboard of arms, and their scores on all cases; arms are in the order of the leaderboard."""

    leaderboard: Leaderboard
    strips: list[Strip]
    cases: int  # that any arm has a score for


def run_overview(run: StoredRun, prices: Prices | None = None) -> Overview:
    """Return the overview of a run; `prices` tell what its arms took."""
    return table_overview(read_scores(sources_of(run)), prices)


def table_overview(scores: ScoreTable, prices: Prices | None = None) -> Overview:
    """Return the overview of the arms of one or more runs."""
    leaderboard = table_leaderboard(scores, prices=prices)
    arms = {arm.label: arm for arm in scores.arms}
    order = [*(one.label for one in leaderboard.places), *leaderboard.unscored]
    means = {label: arms[label].means(SCORE) for label in order}
    hardest = _hardest_first(list(means.values()))
    strips = [
        Strip(label=label, values=_grouped(means[label][hardest]), low=int(np.sum(means[label] < LOW)))
        for label in order
    ]
    return Overview(leaderboard=leaderboard, strips=strips, cases=len(hardest))


def _hardest_first(means: Sequence[Floats]) -> Ints:
    """Return the cases that any arm has a score for, by their mean over arms."""
    if not means:
        return np.empty(0, dtype=np.int64)
    table = np.asarray(means)
    scored = np.flatnonzero(np.any(~np.isnan(table), axis=0))
    return scored[np.argsort(np.nanmean(table[:, scored], axis=0), kind="stable")]


def _grouped(values: Floats) -> list[float | None]:
    """Return at most `_MOST` values, each the mean of its neighbours."""
    count = min(len(values), _MOST)
    parts = (values[len(values) * number // count : len(values) * (number + 1) // count] for number in range(count))
    scored = (part[~np.isnan(part)] for part in parts)
    return [float(part.mean()) if len(part) else None for part in scored]
