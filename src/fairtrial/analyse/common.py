"""Two arms on the cases that both have a value for, as columns, and their mean difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtrial.core.score import Scale
from fairtrial.stats import Paired, mean_difference, paired
from fairtrial.stats.mean import Mean

Floats = NDArray[np.float64]


class Common(NamedTuple):
    """The common cases: the values of a and b, and each case's weight and cluster."""

    keys: list[Any]
    a: Floats
    b: Floats
    weights: Floats
    clusters: list[str] | None

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
        clusters = None if self.clusters is None else [c for c, use in zip(self.clusters, chosen, strict=True) if use]
        keys = [key for key, use in zip(self.keys, chosen, strict=True) if use]
        return Common(keys, self.a[chosen], self.b[chosen], self.weights[chosen], clusters)

    def mean(self, scale: Scale, largest: float | None = None) -> Mean:
        """Return the mean difference, from which an interval of any level can be taken.

        No case can differ by more than the scale allows, or by more than `largest` if that is given.
        """
        return mean_difference(self.a, self.b, self.clusters, self.weights, scale=scale, most=largest)

    def difference(self, scale: Scale) -> Paired:
        """Return the mean difference with its 95 % interval."""
        return paired(self.a, self.b, self.clusters, self.weights, scale=scale)


def common_cases(
    a: Mapping[Any, float], b: Mapping[Any, float], weights: Mapping[Any, float], clusters: Mapping[Any, str]
) -> Common:
    """Return the cases that both have a value for.

    Cases of weight 0 are shown elsewhere but not counted here. A case without a cluster is a cluster of its own.
    """
    keys = sorted(key for key in a.keys() & b.keys() if weights[key] > 0)
    groups = [clusters.get(key, f"\0{key}") for key in keys] if any(key in clusters for key in keys) else None
    return Common(
        keys,
        np.asarray([a[key] for key in keys], dtype=np.float64),
        np.asarray([b[key] for key in keys], dtype=np.float64),
        np.asarray([weights[key] for key in keys], dtype=np.float64),
        groups,
    )
