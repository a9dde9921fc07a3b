"""What tools report, computed again from our store alone: from cases, trials, scores and metrics of a run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

from benchmarks.foreign.check import values_of

__all__ = ["REDUCERS", "clustered_stderr", "mean", "sd", "stderr", "values_of"]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def sd(values: Sequence[float]) -> float:
    return math.sqrt(sum((v - mean(values)) ** 2 for v in values) / (len(values) - 1))


def stderr(values: Sequence[float]) -> float:
    return sd(values) / math.sqrt(len(values))


def clustered_stderr(values: Sequence[float], clusters: Sequence[str]) -> float:
    sums: dict[str, float] = defaultdict(float)
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] += value - mean(values)
    count = len(sums)
    return math.sqrt(sum(s * s for s in sums.values()) * count / (count - 1)) / len(values)


REDUCERS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": mean,
    "max": max,
    "pass_at_2": lambda values: pass_at(values, 2),
}


def pass_at(values: Sequence[float], k: int) -> float:
    right = sum(value >= 1 for value in values)
    if len(values) - right < k:
        return 1.0
    product = 1.0
    for n in range(len(values) - right + 1, len(values) + 1):
        product *= 1.0 - k / n
    return 1.0 - product
