"""Two arms on the cases that both have a value for, as columns, and their mean difference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtrial.core.score import Scale
from fairtrial.stats import Paired, mean_difference, paired
from fairtrial.stats.mean import Mean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Common(NamedTuple):
    """The common cases: their rows in the table, the values of a and b, and each case's weight and cluster."""

    keys: Ints
    a: Floats
    b: Floats
    weights: Floats
    clusters: Ints | None

    @property
    def d(self) -> Floats:
        """Return the differences a − b."""
        return self.a - self.b

    @property
    def plain(self) -> bool:
        """Return whether all cases have weight 1 and there are no clusters."""
        return self.clusters is None and bool(np.all(self.weights == 1))

    def some(self, chosen: NDArray[np.bool_]) -> Common:
        """Return the chosen cases only."""
        clusters = None if self.clusters is None else self.clusters[chosen]
        return Common(self.keys[chosen], self.a[chosen], self.b[chosen], self.weights[chosen], clusters)

    def mean(self, scale: Scale, largest: float | None = None, *, one_sided: bool = False) -> Mean:
        """Return the mean difference, from which an interval of any level can be taken.

        No case can differ by more than the scale allows, or by more than `largest` if that is given.
        """
        return mean_difference(
            self.a, self.b, self.clusters, self.weights, scale=scale, most=largest, one_sided=one_sided
        )

    def difference(self, scale: Scale) -> Paired:
        """Return the mean difference with its 95 % interval."""
        return paired(self.a, self.b, self.clusters, self.weights, scale=scale)


def common_cases(a: Floats, b: Floats, weights: Floats, clusters: Ints | None) -> Common:
    """Return the cases that both have a value for, from one value for every row of the table, NaN where there is none.

    Cases of weight 0 are shown elsewhere but not counted here. A case without a cluster is a cluster of its own.
    """
    rows = np.flatnonzero(~np.isnan(a) & ~np.isnan(b) & (weights > 0))
    groups = None if clusters is None or not np.any(clusters[rows] >= 0) else clusters[rows]
    return Common(rows, a[rows], b[rows], weights[rows], groups)
