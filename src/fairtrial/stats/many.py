"""Many comparisons at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def holm(p_values: ArrayLike) -> list[float]:
    """Holm's adjusted p-values, in the given order."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.minimum(1.0, np.maximum.accumulate(scaled))
    found = np.empty_like(adjusted)
    found[order] = adjusted
    return [float(value) for value in found]
