"""What is known about the scores of one arm besides their mean: a kernel for each statistic.

Kernels take three values per case: how many scores it has, their mean, and the sum of their squares. Results are on the
scale of the scores, or None where there is nothing to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pooled_sd(counts: NDArray[Any], means: NDArray[Any], squares: NDArray[Any]) -> float | None:
    """Return the pooled standard deviation within cases; None if no case has two values."""
    freedom = int(np.sum(counts - 1))
    if freedom == 0:
        return None
    return math.sqrt(max(0.0, float(np.sum(squares - counts * means**2))) / freedom)


def mean_sd(counts: NDArray[Any], means: NDArray[Any], squares: NDArray[Any]) -> float | None:
    """Return the mean of the deviations within each case, where a case with one value has none; None if all do."""
    if not np.any(counts > 1):
        return None
    variances = np.maximum(0.0, squares - counts * means**2) / np.maximum(1, counts - 1)
    return float(np.mean(np.sqrt(np.where(counts > 1, variances, 0.0))))


PER_ARM: dict[str, Callable[..., float | None]] = {"repeat_sd": pooled_sd}  # by their names in JSON
