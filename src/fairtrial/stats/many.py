"""Corrections for multiple comparisons."""

from __future__ import annotations

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
