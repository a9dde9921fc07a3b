"""Two arms on the cases that both have a value for, as columns, and the mean difference between them."""

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
    """The common cases: a's and b's values, what each case weighs, and which belong together."""

    keys: list[Any]
    a: Floats
    b: Floats
    weights: Floats
    clusters: list[str] | None

    @property
    def d(self) -> Floats:
        """The differences."""
        return self.a - self.b

    @property
    def plain(self) -> bool:
        """Whether every case counts alike and stands alone."""
        return self.clusters is None and bool(np.all(self.weights == 1))

    def some(self, chosen: NDArray[np.bool_]) -> Common:
        """Only these cases."""
        clusters = None if self.clusters is None else [c for c, use in zip(self.clusters, chosen, strict=True) if use]
        keys = [key for key, use in zip(self.keys, chosen, strict=True) if use]
        return Common(keys, self.a[chosen], self.b[chosen], self.weights[chosen], clusters)

    def mean(self, scale: Scale, largest: float | None = None) -> Mean:
        """The mean difference, at whatever level it is asked for; no case shows a larger one than the scale allows."""
        return mean_difference(self.a, self.b, self.clusters, self.weights, scale=scale, most=largest)

    def difference(self, scale: Scale) -> Paired:
        """The mean difference with its 95 % interval."""
        return paired(self.a, self.b, self.clusters, self.weights, scale=scale)


def common_cases(
    a: Mapping[Any, float], b: Mapping[Any, float], weights: Mapping[Any, float], clusters: Mapping[Any, str]
) -> Common:
    """What both have; a weight of 0 is shown elsewhere, not counted here. A case without a cluster is its own."""
    keys = sorted(key for key in a.keys() & b.keys() if weights[key] > 0)
    groups = [clusters.get(key, f"\0{key}") for key in keys] if any(key in clusters for key in keys) else None
    return Common(
        keys,
        np.asarray([a[key] for key in keys], dtype=np.float64),
        np.asarray([b[key] for key in keys], dtype=np.float64),
        np.asarray([weights[key] for key in keys], dtype=np.float64),
        groups,
    )
