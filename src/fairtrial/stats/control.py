"""Variance reduction with an earlier run on more cases, which shows how hard these cases are (control variate)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fairtrial.stats.mean import StudentMean


class ControlledMean(StudentMean):
    """The mean of values whose earlier counterparts are known for these n cases and for N > n cases like them.

    θ = mean(d) − β·(mean(x, here) − mean(x, all)), β by least squares. The earlier values are never centred on the same
    cases: the mean would stay as it is, and only its claimed error would shrink.
    """

    method = "earlier run as control variate"
    fewest = 3  # values: a line through two of them leaves nothing to tell its error by

    def __init__(self, values: ArrayLike, earlier: ArrayLike, earlier_all: ArrayLike) -> None:
        d, x, every = (np.asarray(a, dtype=np.float64) for a in (values, earlier, earlier_all))
        n, many = len(d), len(every)
        if many <= n or n < self.fewest:
            raise ValueError("the earlier run must have more cases than this one, and this one at least three")
        centred = x - x.mean()
        squares = float(centred @ centred)
        self.slope = float(centred @ (d - d.mean())) / squares if squares > 0 else 0.0
        self.mean = float(d.mean()) - self.slope * float(x.mean() - every.mean())
        left = d - d.mean() - self.slope * centred
        within = float(left @ left) / ((n - 2) * n)
        variance = within + self.slope**2 * float(np.var(every, ddof=1)) / many
        self.std_err = math.sqrt(variance)
        self.freedom = n - 2.0
        plain = float(np.var(d, ddof=1)) / n
        self.saved = max(0.0, 1 - variance / plain) if plain > 0 else 0.0
