"""`optimisation`: verify an answer to an optimisation problem against a certified baseline."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Scale, Score, ScoreContext
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.optim.answer import STEPS, Answered, read_answer
from fairtrial.optim.problem import Baseline, Problem
from fairtrial.optim.verify import Verified, compare_with_baseline, verify

_UNREADABLE = {"no_json", "truncated", "echo"}
_KEYS, _TYPES = STEPS.index("keys") + 1, STEPS.index("types") + 1


class Optimisation(Scorer, frozen=True, kw_only=True):
    """Solution quality 0–100: how far from random to the certified optimum, at least halved if infeasible.

    Objective and violations are recomputed from `x`; the values that the answer claims are only compared with them.
    Metrics: instruction following and each of its checks, how many steps of the format were kept in their order
    (`format_steps`: JSON, keys, length, types, nothing else), echoes of the question, feasibility, gaps, distance,
    misreported values. Of a case with a baseline but no problem, feasibility is unknown, and gaps are as claimed.
    """

    guide: ClassVar = Guide(
        scale="0–100, from the normalised gap",
        reproducibility="exact",
        best_for="optimisation problems of the suite `optimisation`",
    )
    scores_refusals: ClassVar[bool] = True  # an answer without a solution is scored by the rules of the suite
    sees_all: ClassVar[bool] = True
    tolerance: Annotated[float, msgspec.Meta(gt=0)] | None = None  # None: the problem's own, 1e-6 unless it says so
    report_tolerance: Annotated[float, msgspec.Meta(gt=0)] = 1e-3

    def scales(self) -> dict[str, Scale]:
        """Return the scales, worst to best; the worst is None if unbounded."""
        steps = ("valid_json", "right_keys", "right_length", "right_types", "only_json")
        rates = ("instruction_following", *steps, "feasible", "status_right")
        faults = ("echo", "truncated", "misreported_objective", "misreported_violations")
        gaps = ("relative_gap", "absolute_gap", "violation", "l2_distance")
        return {
            **dict.fromkeys((*rates, "baseline_beaten"), (0.0, 1.0)),
            **dict.fromkeys(faults, (1.0, 0.0)),
            **dict.fromkeys(gaps, (None, 0.0)),
            "normalised_gap": (1.0, 0.0),
            "format_steps": (0.0, float(len(STEPS))),
            "quality": (0.0, 100.0),
        }

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        try:
            problem_of(case)
        except (KeyError, TypeError, msgspec.ValidationError):
            yield "the optimisation scorer needs a problem and its baseline; use `suite: optimisation`"

    async def score(self, context: ScoreContext) -> Score:
        problem, baseline = problem_of(context.case)
        truncated = context.finish_reason == "length"
        n = len(baseline.x or ()) if problem is None else problem.n
        answered = read_answer(context.response, n, truncated=truncated, prompt=_asked(context))
        if problem is None:
            verified = compare_with_baseline(baseline, answered)
        else:
            tolerance = self.tolerance or problem.tolerance
            verified = verify(problem, baseline, answered, tolerance=tolerance, report_tolerance=self.report_tolerance)
        return Score(
            value=min(1.0, max(0.0, verified.quality / 100)),
            confidence=1.0 if baseline.certified else None,
            notes=verified.note,
            raw=verified.quality,
            max=100.0,
            details={"findings": list(answered.findings), **_details(answered, verified, baseline)},
            metrics=_metrics(answered, verified),
        )


def problem_of(case: Case) -> tuple[Problem | None, Baseline]:
    """Return the problem and the baseline stored in a case; None if only a baseline is known."""
    data: dict[str, Any] = case.metadata or {}
    problem = data.get("problem")
    return None if problem is None else msgspec.convert(problem, Problem), msgspec.convert(data["baseline"], Baseline)


def _asked(context: ScoreContext) -> str:
    """Return all that was sent, without which an echo cannot be told from an answer."""
    sent = [str(message.get("content", "")) for message in context.messages if message.get("role") != "assistant"]
    return "\n".join([context.case.input, *sent])


def _details(answered: Answered, verified: Verified, baseline: Baseline) -> dict[str, Any]:
    return {
        "objective": verified.objective,
        "claimed_objective": answered.objective,
        "baseline_objective": baseline.objective,
        "violation": verified.violation,
        "claimed_violation": answered.violations,
        "status": answered.status,
        "certified": baseline.certified,
        "baseline_beaten": verified.beaten,
    }


def _metrics(answered: Answered, verified: Verified) -> dict[str, float]:
    findings = set(answered.findings)
    metrics: dict[str, float | bool | None] = {
        "instruction_following": answered.follows,
        "feasible": verified.feasible,
        "normalised_gap": verified.normalised_gap,
        "relative_gap": verified.relative_gap,
        "quality": verified.quality,
        "valid_json": answered.x is not None or answered.status is not None or not findings & _UNREADABLE,
        "right_length": answered.x is not None or answered.status == "infeasible",
        "right_keys": answered.steps >= _KEYS,
        "right_types": answered.steps >= _TYPES,
        "only_json": answered.only_json,
        "format_steps": answered.steps,
        "echo": answered.echo,
        "truncated": "truncated" in findings,
        "status_right": verified.status_right,
        "absolute_gap": verified.absolute_gap,
        "violation": verified.violation,
        "l2_distance": verified.distance,
        "misreported_objective": verified.misreported_objective,
        "misreported_violations": verified.misreported_violations,
        "baseline_beaten": verified.beaten,
    }
    return {name: float(value) for name, value in metrics.items() if value is not None}
