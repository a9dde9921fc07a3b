"""Two arms on the cases that both have a value for, as columns, and the mean difference between them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.core.score import Scale
from fairtrial.stats import Paired, paired
from fairtrial.stats.one_arm import limits

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

    def difference(self, scale: Scale) -> Paired:
        """The paired difference; none is larger than the scale."""
        found = paired(self.a, self.b, self.clusters, self.weights)
        low, high = limits(scale, np.concatenate([self.a, self.b]))
        most = high - low
        if found.ci95 is None or not math.isfinite(most):
            return found
        if found.std_err == 0 and found.difference is not None:
            return msgspec.structs.replace(found, ci95=_if_all_agree(found.difference, found.units, most))
        return msgspec.structs.replace(found, ci95=(max(-most, found.ci95[0]), min(most, found.ci95[1])))


def _if_all_agree(difference: float, units: int, most: float) -> tuple[float, float]:
    """Where all units differ by the same, at most a share q of others does otherwise (Clopper and Pearson), and those
    by no more than the scale allows."""
    q = 1 - 0.025 ** (1 / units)
    middle, room = (1 - q) * difference, q * most
    return max(-most, middle - room), min(most, middle + room)


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
