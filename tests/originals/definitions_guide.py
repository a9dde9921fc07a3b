"""The guide's own definitions, written anew from its description: gaps, feasibility, rates, composite, tests.

Nothing here knows of fairtrial. Problems are what the files in `files/guide` describe: Σ (x − t)² + c with Σ x ≥ b in a box,
so that optima are known in closed form.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

import numpy as np

from tests.lazily import Library

stats = Library("scipy.stats")

TOLERANCE = 1e-6
FLOOR = 1e-8  # of the denominator of the relative gap


class Instance(NamedTuple):
    """Σ (x − t)² + c, minimised (or its negative maximised), with Σ x ≥ b and −10 ≤ x ≤ 10."""

    difficulty: str
    target: tuple[float, ...]
    least: float  # of Σ x
    constant: float = 0.0
    maximise: bool = False

    @property
    def n(self) -> int:
        return len(self.target)

    @property
    def best_x(self) -> list[float]:
        """Every x is moved by the same amount until the sum is large enough."""
        move = max(0.0, self.least - sum(self.target)) / self.n
        return [t + move for t in self.target]

    @property
    def best(self) -> float:
        return self.objective(self.best_x)

    def objective(self, x: Sequence[float]) -> float:
        squares = sum((value - t) ** 2 for value, t in zip(x, self.target, strict=True))
        return self.constant - squares if self.maximise else self.constant + squares

    def violation(self, x: Sequence[float]) -> float:
        """The largest violation: of the sum, divided by its row's norm √n, and of the box."""
        outside = max(*(abs(value) - 10 for value in x), 0.0)
        return max(outside, (self.least - sum(x)) / math.sqrt(self.n), 0.0)


INSTANCES = {
    "easy-1": Instance("easy", (0.0,) * 10, 0.0),  # the guide's own
    "easy-2": Instance("easy", (1.0, 2.0, 3.0, -1.0), 0.0, 5.0),
    "easy-3": Instance("easy", (0.0,) * 5, 5.0),
    "medium-1": Instance("medium", tuple(k / 2 for k in range(1, 11)), 30.0),
    "medium-2": Instance("medium", (0.5,) * 10, 10.0, 20.0, maximise=True),
    "medium-3": Instance("medium", (-1.0,) * 6, 0.0),
    "hard-1": Instance("hard", (2.0, -2.0) * 4, 4.0),
    "hard-2": Instance("hard", (3.0,) * 10, 25.0, -7.0),
}


class Evaluated(NamedTuple):
    """One answer file, as the guide evaluates it."""

    followed: bool  # valid JSON with x of the right length and objective_value
    feasible: bool | None = None  # None: nobody can tell without the problem
    violation: float | None = None
    absolute_gap: float | None = None
    relative_gap: float | None = None
    distance: float | None = None
    objective: float | None = None
    reported: float | None = None  # the largest of constraint_violations


def read(path: Path, n: int) -> tuple[dict[str, Any] | None, bool]:
    """The object of an answer that has a point, and whether it keeps to the format."""
    try:
        answer = json.loads(path.read_text("utf-8"))
    except ValueError:
        return None, False
    if len(answer["x"]) != n or not all(map(math.isfinite, answer["x"])):
        return None, False
    return answer, "objective_value" in answer


def evaluate(path: Path, instance: Instance) -> Evaluated:
    """An answer against its problem: objective and violations from x."""
    answer, followed = read(path, instance.n)
    if answer is None:
        return Evaluated(False, feasible=False)
    x = answer["x"]
    objective, violation = instance.objective(x), instance.violation(x)
    return Evaluated(
        followed,
        violation <= TOLERANCE,
        violation,
        absolute_gap(objective, instance.best),
        relative_gap(objective, instance.best),
        l2(x, instance.best_x),
        objective,
        largest(answer.get("constraint_violations")),
    )


def evaluate_alone(path: Path, baseline: dict[str, Any]) -> Evaluated:
    """An answer against a baseline file alone: the objective is the one that it claims."""
    answer, _ = read(path, len(baseline["x"]))
    if answer is None:
        return Evaluated(False)
    claimed, best = answer["objective_value"], baseline["objective_value"]
    gaps = absolute_gap(claimed, best), relative_gap(claimed, best)
    return Evaluated(True, None, None, *gaps, l2(answer["x"], baseline["x"]), claimed)


def absolute_gap(objective: float, best: float) -> float:
    return abs(objective - best)


def relative_gap(objective: float, best: float) -> float:
    return abs(objective - best) / max(abs(best), FLOOR)


def l2(x: Sequence[float], y: Sequence[float]) -> float:
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))


def largest(reported: Any) -> float | None:
    """The largest of reported violations: a number, a list or an object of them."""
    values = list(reported.values()) if isinstance(reported, dict) else reported
    if values is None:
        return None
    return max((abs(one) for one in values), default=0.0) if isinstance(values, list) else abs(values)


def normalised(objective: float | None, best: float, chance: float) -> float:
    """0 at the optimum, 1 at no better than chance or without a point."""
    return 1.0 if objective is None else min(1.0, max(0.0, (objective - best) / (chance - best)))


def composite(followed: float, gap: float, weights: tuple[float, float] = (0.5, 0.5)) -> float:
    """0.5 · following + 0.5 · (1 − normalised gap), or with other weights."""
    share = weights[0] / sum(weights), weights[1] / sum(weights)
    return share[0] * followed + share[1] * (1 - gap)


def partial_credit(gap: float, violation: float) -> float:
    """All of 1 − gap if feasible, at most half of it otherwise: the less, the larger the violation."""
    return 100 * (1 - gap) if violation <= TOLERANCE else 50 * (1 - gap) * max(0.0, 1 - violation)


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    return fmean(values), stdev(values)


def middle(values: Sequence[float]) -> float:
    return median(values)


def paired_t(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """t and p of the paired t-test."""
    found = stats.ttest_rel(a, b)
    return float(found.statistic), float(found.pvalue)


def paired_t_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean difference, by the paired t-test."""
    low, high = stats.ttest_rel(a, b).confidence_interval(0.95)
    return float(low), float(high)


def two_sample_t(a: Sequence[float], b: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """p of the two-sample t-test with pooled variance, and the 95 % interval of the difference."""
    found = stats.ttest_ind(a, b, equal_var=True)
    low, high = found.confidence_interval(0.95)
    return float(found.pvalue), (float(low), float(high))


def bootstrap(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean difference (bias-corrected and accelerated)."""
    found = stats.bootstrap(
        (np.subtract(a, b),), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(7)
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)
