"""Corrections for multiple comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fairtrial.stats.mean import ALPHA


def holm(p_values: ArrayLike) -> list[float]:
    """Return Holm's adjusted p-values, in the given order."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.minimum(1.0, np.maximum.accumulate(scaled))
    result = np.empty_like(adjusted)
    result[order] = adjusted
    return [float(value) for value in result]


def levels_of_verdicts(
    p_values: Sequence[float | None], p_within: Sequence[float | None] | None, alpha: float = ALPHA
) -> list[float]:
    """Return the level of each interval, so that the verdicts read off them have a family-wise error of at most alpha.

    This holds for the claims of a difference and for the claims of equivalence (`p_within` a margin), each as a family.
    One that Holm's procedure finds different gets the level at which it does; every other one gets the stricter of the
    two levels, at which neither a difference nor an equivalence can be claimed too often.
    """
    different = _known_levels(p_values, alpha)
    same = different if p_within is None else _known_levels(p_within, alpha)
    return [
        level if p is not None and p < level else min(level, for_same)
        for p, level, for_same in zip(p_values, different, same, strict=True)
    ]


def _known_levels(p_values: Sequence[float | None], alpha: float) -> list[float]:
    levels = iter(holm_levels([p for p in p_values if p is not None], alpha))
    return [alpha if p is None else next(levels) for p in p_values]


def holm_levels(p_values: ArrayLike, alpha: float = ALPHA) -> list[float]:
    """Return the level at which Holm's procedure tests each p-value, in the given order, to draw matching intervals.

    The smallest p is tested at α/M, the next at α/(M − 1), and so on; from the first that fails, all are tested at the
    level at which that one failed.
    """
    p = np.asarray(p_values, dtype=np.float64)
    levels = np.empty(len(p))
    failed: float | None = None
    for place, number in enumerate(np.argsort(p, kind="stable")):
        level = alpha / (len(p) - place) if failed is None else failed
        if failed is None and not p[number] < level:
            failed = level
        levels[number] = level
    return [float(level) for level in levels]
