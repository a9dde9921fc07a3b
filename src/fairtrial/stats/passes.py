"""Right answers over repeats: at least once in k tries (pass@k), and every time (pass^k)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def pass_at_k(right: ArrayLike, tries: ArrayLike, k: int) -> Floats:
    """For each case, the chance that at least one of k tries is right: 1 − C(n − c, k)/C(n, k), unbiased.

    Cases with fewer than k tries say nothing: NaN.
    """
    c, n = np.asarray(right, dtype=np.float64), np.asarray(tries, dtype=np.float64)
    return 1 - _drawn(n - c, n, k)


def pass_hat_k(right: ArrayLike, tries: ArrayLike, k: int) -> Floats:
    """For each case, the chance that all of k tries are right: C(c, k)/C(n, k), unbiased; NaN as above."""
    return _drawn(np.asarray(right, dtype=np.float64), np.asarray(tries, dtype=np.float64), k)


def _drawn(kind: Floats, n: Floats, k: int) -> Floats:
    """The chance that k of n, drawn without putting back, are all of one kind."""
    if k < 1:
        raise ValueError("it takes one try at least")
    enough = np.where(n >= k, n, np.nan)
    found = np.ones(len(n))
    for taken in range(k):
        found = found * np.maximum(0.0, kind - taken) / (enough - taken)
    return found
