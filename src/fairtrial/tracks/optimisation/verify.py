"""Verifying an answer: everything is recomputed from its x, and no claim is trusted."""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from fairtrial.text.printable import significant
from fairtrial.tracks.optimisation.answer import Answered
from fairtrial.tracks.optimisation.problem import Baseline, Floats, OptimisationProblem

GapKind = Literal["chance", "relative", "absolute", "exact"]
_NEARLY_ZERO = 1e-8  # of an optimum: the guide divides by at least this, so a relative gap says nothing there


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """An answer compared with the problem and its baseline. Values that need a point are None without one."""

    quality: float  # 0–100
    feasible: bool | None = None  # None if the problem is not known
    violation: float | None = None
    objective: float | None = None
    absolute_gap: float | None = None
    relative_gap: float | None = None
    normalised_gap: float
    distance: float | None = None  # to the baseline's x
    misreported_objective: bool | None = None
    misreported_violations: bool | None = None
    status_right: bool | None = None  # None if no status was claimed
    beaten: bool = False  # feasible, and better than the baseline beyond the tolerance
    note: str


def verify(
    problem: OptimisationProblem,
    baseline: Baseline,
    answered: Answered,
    *,
    tolerance: float = 1e-6,
    report_tolerance: float = 1e-3,
) -> Verified:
    """Compute quality, gaps and feasibility of an answer, and what it misreported."""
    if baseline.status == "infeasible":
        return _infeasible(answered)
    if answered.x is None:
        return _without_point(answered)
    x = np.asarray(answered.x, dtype=np.float64)
    objective, violation = _evaluate(problem, x)
    if not math.isfinite(objective) or not math.isfinite(violation):
        return _without_point(answered, note="the point is too far off to compute an objective or violations")
    assert baseline.objective is not None and baseline.x is not None
    feasible = violation <= tolerance
    sign = 1.0 if problem.sense == "minimise" else -1.0
    deficit = sign * (objective - baseline.objective)  # positive: worse than the baseline
    gap = normalised_gap(baseline, objective)
    # A tolerance helps a little, so beating the baseline requires feasibility without one.
    beaten = violation <= 1e-9 and deficit < -1e-6 * max(1.0, abs(baseline.objective))
    return Verified(
        quality=_quality(gap, violation, tolerance),
        feasible=feasible,
        violation=violation,
        objective=objective,
        absolute_gap=abs(deficit),
        relative_gap=abs(deficit) / max(abs(baseline.objective), _NEARLY_ZERO),
        normalised_gap=gap,
        distance=float(np.linalg.norm(x - np.asarray(baseline.x))),
        misreported_objective=_differs(answered.objective, objective, report_tolerance),
        misreported_violations=_differs(answered.violations, violation, report_tolerance),
        status_right=_status_right(answered.status, near=feasible and gap <= 1e-3),
        beaten=beaten,
        note=_note(objective, baseline.objective, violation, feasible=feasible, beaten=beaten),
    )


def compare_with_baseline(baseline: Baseline, answered: Answered) -> Verified:
    """Hold an answer against a baseline alone, without its problem: the objective is the one that it claims.

    Whether the point is feasible cannot be known. The gap is normalised as always if the baseline has a random
    objective and a sense, else it is the relative gap, at most 1; where the optimum is 0, the absolute one.
    """
    if baseline.status == "infeasible":
        return _infeasible(answered)
    best, claimed = baseline.objective, answered.objective
    if baseline.x is None and best is not None and claimed is not None:
        known = "optimum" if baseline.certified else "published"
        return _of_claim(baseline, best, claimed, f"value {significant(claimed)}, {known} {significant(best)}")
    if answered.x is None or baseline.x is None or best is None:
        return msgspec.structs.replace(_without_point(answered), feasible=None)
    if claimed is None:
        note = "no objective was claimed, and without the problem none can be computed"
        return msgspec.structs.replace(_without_point(answered, note=note), feasible=None)
    note = f"against a baseline alone: claims {significant(claimed)}, baseline {significant(best)}"
    distance = float(np.linalg.norm(np.subtract(answered.x, baseline.x)))
    return msgspec.structs.replace(_of_claim(baseline, best, claimed, note), distance=distance)


def _of_claim(baseline: Baseline, best: float, claimed: float, note: str) -> Verified:
    """Hold a claimed objective against the best one; where it comes from cannot be verified."""
    deficit, kind = abs(claimed - best), gap_kind(baseline, known=False)
    if kind == "chance":
        gap = normalised_gap(baseline, claimed)
    else:
        gap = min(1.0, deficit / (1.0 if kind == "absolute" else abs(best)))
    return Verified(
        quality=100 * (1 - gap),
        absolute_gap=deficit,
        relative_gap=deficit / max(abs(best), _NEARLY_ZERO),
        normalised_gap=gap,
        note=note,
    )


def gap_kind(baseline: Baseline, *, known: bool) -> GapKind:
    """Return what the gap of a problem is: where 1 is chance, or a relative or absolute gap of 1 or more, or all else.

    `known` says whether there is the problem itself, rather than a baseline alone.
    """
    if baseline.random_objective not in (None, baseline.objective) and (known or baseline.sense is not None):
        return "chance"
    if known:
        return "exact"
    return "absolute" if abs(baseline.objective or 0.0) <= _NEARLY_ZERO else "relative"


def reported_credit(verified: Verified, reported: float | None, tolerance: float = 1e-6) -> float | None:
    """Return the quality 0–100 that an answer would have if the violation that it reports were true.

    None if it reports none. What it is worth without a point stays 0.
    """
    if verified.absolute_gap is None:
        return verified.quality
    return None if reported is None else _quality(verified.normalised_gap, reported, tolerance)


def _quality(gap: float, violation: float, tolerance: float) -> float:
    """Return the quality of a point by its gap; at least half of it is lost where it is not feasible."""
    return 100 * (1 - gap) if violation <= tolerance else 50 * (1 - gap) * max(0.0, 1 - violation)


def _evaluate(problem: OptimisationProblem, x: Floats) -> tuple[float, float]:
    """Return the objective and the largest violation; infinite if the numbers are too large to compute with."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return problem.value(x), problem.violations(x).largest
    except (ArithmeticError, ValueError):
        return math.inf, math.inf


def _status_right(status: str | None, *, near: bool) -> bool | None:
    """Return whether a claimed status is right for a solvable problem; "optimal" requires a near-optimal point."""
    if status is None:
        return None
    return near if status == "optimal" else not near and status == "timeout"


def normalised_gap(baseline: Baseline, objective: float) -> float:
    """Return 0 at the optimum and 1 for no better than random feasible points, clipped to that range."""
    assert baseline.objective is not None
    chance = baseline.random_objective
    if chance is None or chance == baseline.objective:
        return 0.0 if math.isclose(objective, baseline.objective, rel_tol=1e-6, abs_tol=1e-9) else 1.0
    return min(1.0, max(0.0, (objective - baseline.objective) / (chance - baseline.objective)))


def _differs(claimed: float | None, truth: float, tolerance: float) -> bool | None:
    return None if claimed is None else abs(claimed - truth) > tolerance * max(1.0, abs(truth))


def _note(objective: float, best: float, violation: float, *, feasible: bool, beaten: bool) -> str:
    if beaten:
        return f"BASELINE BEATEN: {significant(objective, 8)} is better than {significant(best, 8)}, and feasible"
    where = "feasible" if feasible else f"infeasible by {violation:.3g}"
    return f"{where}, objective {significant(objective)}, baseline {significant(best)}"


def _infeasible(answered: Answered) -> Verified:
    """Verify an answer to an infeasible problem: the right answer says that it is infeasible."""
    right = answered.status == "infeasible"
    return Verified(
        quality=100.0 if right else 0.0,
        feasible=right,  # the answer claims nothing that is wrong
        normalised_gap=0.0 if right else 1.0,
        status_right=None if answered.status is None else right,
        note="infeasible, as the answer says" if right else "no point is feasible, but the answer does not say so",
    )


def _without_point(answered: Answered, note: str = "") -> Verified:
    """Return the result of an answer without a usable point: scored 0, not left unscored."""
    return Verified(
        quality=0.0,
        feasible=False,
        normalised_gap=1.0,
        status_right=None if answered.status is None else False,
        note=note or f"no usable point: {', '.join(answered.findings) or 'the answer claims that none is feasible'}",
    )
