"""Variance components of a mean: cases, repeats and judgements."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class Components(msgspec.Struct, frozen=True, kw_only=True):
    """Variances by the method of moments, and their contributions to the variance of the mean.

    `repeats` and `judgements` are harmonic means if cases have different numbers of them. `repeat` is None if no case
    has two answers, and `judge` if no answer has two judgements: they are then contained in the component above.
    """

    case: float
    repeat: float | None
    judge: float | None
    cases: int
    repeats: float
    judgements: float
    mean_variance: float

    @property
    def shares(self) -> dict[str, float | None]:
        """Return each source's share of the variance of the mean; None if unknown and contained in the one above."""
        parts = {
            "case": self.case,
            "repeat": None if self.repeat is None else self.repeat / self.repeats,
            "judge": None if self.judge is None else self.judge / self.judgements / self.repeats,
        }
        total = sum(value or 0.0 for value in parts.values())
        return {name: None if value is None else value / total if total else 0.0 for name, value in parts.items()}

    def variance(self, cases: float, repeats: float, judgements: float) -> float:
        """Return the variance that the mean would have with these numbers of cases, repeats and judgements."""
        return (self.case + ((self.repeat or 0.0) + (self.judge or 0.0) / judgements) / repeats) / cases

    def best_repeats(self, cost_case: float = 1.0, cost_repeat: float = 1.0) -> float | None:
        """Return the best repeats per case, R* = √(c_case/c_repeat · σ²_repeat/σ²_case); None if cases do not vary."""
        if self.case <= 0 or self.repeat is None:
            return None
        noise = self.repeat + (self.judge or 0.0) / self.judgements
        return math.sqrt(cost_case / cost_repeat * noise / self.case)


def variance_of_repeats(counts: ArrayLike, sums: ArrayLike, squares: ArrayLike) -> Components:
    """Estimate the components of cases and repeats from the count, sum and sum of squares of every case's scores."""
    answered = np.asarray(counts, dtype=np.int64)
    means = np.asarray(sums, dtype=np.float64) / answered
    within = np.maximum(0.0, np.asarray(squares, dtype=np.float64) - answered * means**2)
    freedom = int(np.sum(answered - 1))
    return _components(means, answered, float(within.sum()) / freedom if freedom else None, None, 1.0)


def variance_components(cube: ArrayLike) -> Components:
    """Estimate the components from cases × repeats × judgements; NaN is missing. Two axes mean one judgement each."""
    y = np.asarray(cube, dtype=np.float64)
    if y.ndim == 2:
        y = y[:, :, None]
    judged, answered = np.sum(~np.isnan(y), axis=2), np.sum(~np.all(np.isnan(y), axis=2), axis=1)
    y, judged, answered = y[answered > 0], judged[answered > 0], answered[answered > 0]
    judgements = _harmonic(judged[judged > 0])
    answers = np.where(judged > 0, np.nansum(y, axis=2) / np.maximum(judged, 1), np.nan)
    judge = _pooled(y, answers[:, :, None], judged)
    means = np.nansum(answers, axis=1) / answered
    return _components(means, answered, _pooled(answers, means[:, None], answered), judge, judgements)


def _components(
    means: Floats, answered: NDArray[np.int64], between_repeats: float | None, judge: float | None, judgements: float
) -> Components:
    """Separate the variance between cases from that between repeats, and that from the judges'."""
    n, repeats = len(answered), _harmonic(answered)
    repeat = None if between_repeats is None else max(0.0, between_repeats - (judge or 0.0) / judgements)
    between_cases = float(np.var(means, ddof=1)) if n > 1 else 0.0
    noise = judge / judgements if between_repeats is None and judge is not None else (between_repeats or 0.0)
    components = Components(
        case=max(0.0, between_cases - noise / repeats),
        repeat=repeat,
        judge=judge,
        cases=n,
        repeats=repeats,
        judgements=judgements,
        mean_variance=0.0,
    )
    return msgspec.structs.replace(components, mean_variance=components.variance(n, repeats, judgements))


def _pooled(values: Floats, means: Floats, counts: NDArray[np.int64]) -> float | None:
    """Return the pooled variance within groups of at least two values; None if there is no such group."""
    freedom = int(np.sum(np.maximum(0, counts - 1)))
    return float(np.nansum((values - means) ** 2)) / freedom if freedom else None


def _harmonic(counts: NDArray[np.int64]) -> float:
    if np.all(counts == counts[0]):
        return float(counts[0])
    return float(len(counts) / np.sum(1 / counts))
