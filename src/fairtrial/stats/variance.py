"""Where the uncertainty of a mean comes from: cases, repeats, judgements."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike


class Components(msgspec.Struct, frozen=True, kw_only=True):
    """Variances by the method of moments, and what each contributes to the variance of the mean."""

    case: float
    repeat: float
    judge: float
    cases: int
    repeats: int
    judgements: int
    mean_variance: float

    @property
    def shares(self) -> dict[str, float]:
        """Each source's share in the variance of the mean."""
        parts = {
            "case": self.case,
            "repeat": self.repeat / self.repeats,
            "judge": self.judge / self.judgements / self.repeats,
        }
        total = sum(parts.values())
        return {name: value / total if total else 0.0 for name, value in parts.items()}

    def best_repeats(self, cost_case: float = 1.0, cost_repeat: float = 1.0) -> float | None:
        """R* = √(c_case/c_repeat · σ²_repeat/σ²_case): repeats that a case is worth; None where cases do not vary."""
        if self.case <= 0:
            return None
        return math.sqrt(cost_case / cost_repeat * (self.repeat + self.judge / self.judgements) / self.case)


def variance_components(cube: ArrayLike) -> Components:
    """Of cases × repeats × judgements, complete. Two axes mean one judgement each."""
    y = np.asarray(cube, dtype=np.float64)
    if y.ndim == 2:
        y = y[:, :, None]
    n, repeats, judgements = y.shape
    judge = float(np.var(y, axis=2, ddof=1).mean()) if judgements > 1 else 0.0
    answers = y.mean(axis=2)
    between_repeats = float(np.var(answers, axis=1, ddof=1).mean()) if repeats > 1 else 0.0
    repeat = max(0.0, between_repeats - judge / judgements)
    between_cases = float(np.var(answers.mean(axis=1), ddof=1)) if n > 1 else 0.0
    case = max(0.0, between_cases - between_repeats / repeats)
    return Components(
        case=case,
        repeat=repeat,
        judge=judge,
        cases=n,
        repeats=repeats,
        judgements=judgements,
        mean_variance=(case + (repeat + judge / judgements) / repeats) / n,
    )
