"""What other arms scored on the same cases: it tells how a new one is likely to differ from one of them.

A new arm was asked some cases of a suite that many arms have answered. Where cases were drawn at random, what the
others scored on them and on the rest shows whether the drawn ones happen to favour one of the two; how much that says
about the new arm is estimated from its own answers, so that a bad guess costs nothing but its use.
"""

from __future__ import annotations

import numpy as np

from fairtrial.analyse.arm_scores import ArmScores, RunSource
from fairtrial.analyse.case_table import Floats
from fairtrial.analyse.score_table import ScoreTable

FEWEST_ARMS = 5  # that have answered all cases
_PART = 0.95  # of them, that the new arm has answered at most: what it failed on was not drawn


def expected_difference(scores: ScoreTable, a: ArmScores, b: ArmScores, metric: str) -> tuple[Floats, int] | None:
    """Return a − b as other arms let one expect it, by row of the table, and their number; NaN where it is not known.

    None unless one of the two arms is of a run with more cases, of which the other one was asked some at random.
    """
    if a.source is b.source:
        return None
    old, new = (a, b) if len(a.values[metric]) > len(b.values[metric]) else (b, a)
    if len(new.values[metric]) > _PART * len(old.values[metric]):
        return None
    rows = np.isfinite(old.means(metric))
    means = [one.means(metric) for one in scores.arms if one.source is old.source]
    others = [values for values in means if np.all(np.isfinite(values[rows]))]
    uneven = scores.clusters is not None or np.any(scores.weights[rows] != 1)
    if len(others) < FEWEST_ARMS or uneven or not _drawn(new.source, old.source):
        return None
    expected = np.full(len(rows), np.nan)
    expected[rows] = np.mean([values[rows] for values in others], axis=0) - old.means(metric)[rows]
    return (expected if new is a else -expected), len(others)


def _drawn(new: RunSource, old: RunSource) -> bool:
    """Return whether the cases of a run were drawn at random from those of the same dataset that another one has."""
    datasets = {run.plan.dataset_sha256 for source in (new, old) for run in source.runs}
    chosen = [run.record.selected for run in new.runs]
    by_chance = all(one is not None and not one.get("cases") and not one.get("first") for one in chosen)
    return len(datasets) == 1 and by_chance and all(run.record.order_key is not None for run in new.runs)
