"""What would decide a gate that cannot tell: more cases like these, or more answers to these cases."""

from __future__ import annotations

import math

import numpy as np

from fairtrial.analyse.comparison import ANYTIME, Comparison
from fairtrial.analyse.gate_reasons import Settle
from fairtrial.analyse.planning import cases_to_pass
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable
from fairtrial.stats.distributions import normal_quantile

_POWER = 0.8  # how often this many would be enough
_MOST = 1000  # answers to a case: more than anyone would ask for


def what_settles(
    scores: ScoreTable, after: ArmScores, before: ArmScores, pair: Comparison, margin: float
) -> Settle | None:
    """Return what would be enough in 4 of 5 such runs if the difference is as large as it seems; None if unknown.

    The interval has to leave one of the two limits: −margin, and the gate passes; or 0, and it blocks.
    """
    if pair.metric != SCORE or not pair.std_err or pair.count < 2 or pair.difference is None or pair.method == ANYTIME:
        return None
    gain = pair.difference
    room = max(gain + margin, -gain)
    alpha = 1 - pair.level
    spread = pair.std_err * math.sqrt(pair.count)
    noise = _noise_share(scores, after, before)
    return Settle(
        name="regression",
        arm=after.arm.name,
        cases=max(pair.count + 1, cases_to_pass(spread, room, alpha=alpha, pilot=max(2, pair.units))),
        repeats=_repeats(answers(after), noise, pair.std_err, room, alpha),
        now=answers(after),
        noise_known=noise is not None,
    )


def answers(entry: ArmScores) -> int:
    """Return how many answers a case has, as a rule."""
    column = entry.values[SCORE]
    return max(1, round(float(np.median(column.counts[column.rows])))) if len(column) else 1


def _repeats(now: int, noise: float | None, std_err: float, room: float, alpha: float) -> int | None:
    """Return how many answers to each case would be enough: they take away the noise of this run, and nothing else.

    Where it is unknown how much scores vary by chance, it is one more, which tells.
    """
    if noise is None:
        return now + 1
    wanted = room / (normal_quantile(1 - alpha / 2) + normal_quantile(_POWER))
    left = wanted**2 - std_err**2 + noise
    if left <= 0:
        return None
    needed = max(now + 1, math.ceil(now * noise / left))
    return needed if needed <= _MOST else None


def _noise_share(scores: ScoreTable, after: ArmScores, before: ArmScores) -> float | None:
    """Return the part of the squared standard error that comes from the answers of this run varying by chance."""
    for entry in (after, before):
        column = entry.values[SCORE]
        several = np.flatnonzero((column.counts > 1) & (scores.weights > 0))
        if not len(several):
            continue
        counts, sums = column.counts[several], column.sums[several]
        squares = entry.spread.squares[several]
        variance = float(np.mean(np.maximum(0.0, squares - sums**2 / counts) / (counts - 1)))
        own = after.values[SCORE]
        rows = np.flatnonzero((own.counts > 0) & (scores.weights > 0))
        weights = scores.weights[rows] / scores.weights[rows].sum()
        return float(variance * np.sum(weights**2 / own.counts[rows]))
    return None
