"""Right answers over repeats: at least once in k tries (pass@k), and every time (pass^k)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def pass_at_k(right: ArrayLike, tries: ArrayLike, k: int) -> Floats:
    """Return, for each case, the unbiased chance that at least one of k tries is right: 1 − C(n − c, k)/C(n, k).

    Cases with fewer than k tries are NaN.
    """
    c, n = np.asarray(right, dtype=np.float64), np.asarray(tries, dtype=np.float64)
    return 1 - _all_of_kind(n - c, n, k)


def pass_hat_k(right: ArrayLike, tries: ArrayLike, k: int) -> Floats:
    """Return, for each case, the unbiased chance that all of k tries are right: C(c, k)/C(n, k).

    Cases with fewer than k tries are NaN.
    """
    return _all_of_kind(np.asarray(right, dtype=np.float64), np.asarray(tries, dtype=np.float64), k)


def _all_of_kind(kind: Floats, n: Floats, k: int) -> Floats:
    """Return the chance that k of n, drawn without replacement, are all of one kind."""
    if k < 1:
        raise ValueError("at least one try is needed")
    enough = np.where(n >= k, n, np.nan)
    chance = np.ones(len(n))
    for taken in range(k):
        chance = chance * np.maximum(0.0, kind - taken) / (enough - taken)
    return chance
