"""`optimisation`: verify an answer to an optimisation problem against a certified baseline."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from fairtrial.agents.workspace.program import Sandbox, missing_sandbox, run_program
from fairtrial.core.experiment import Case
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.printable import clipped
from fairtrial.tracks.optimisation.answer import STEPS, Answered, read_answer
from fairtrial.tracks.optimisation.problem import Baseline, OptimisationProblem
from fairtrial.tracks.optimisation.program import (
    FAILURES,
    MEMORY_MB,
    RUNNER,
    SECONDS,
    answered_by,
    find_program,
    valued_by,
    variable_names,
    without_program,
)
from fairtrial.tracks.optimisation.verify import Verified, compare_with_baseline, reported_credit, verify

_UNREADABLE = {"no_json", "truncated", "echo", *FAILURES}
_MAX_OUTPUT = 2000
_KEYS, _TYPES = STEPS.index("keys") + 1, STEPS.index("types") + 1


class Optimisation(Scorer, frozen=True, kw_only=True):
    """Solution quality 0–100: how far from random to the certified optimum, at least halved if infeasible.

    Objective and violations are recomputed from `x`; the values that the answer claims are only compared with them.
    Metrics: instruction following and each of its checks, how many steps of the format were kept in their order
    (`format_steps`: JSON, keys, length, types, nothing else), echoes of the question, feasibility, gaps, distance,
    misreported values. Of a case with a baseline but no problem, feasibility is unknown, and gaps are as claimed.

    With `partial_credit: true`, the violations that an answer reports (`constraint_violations`) give it a credit of
    their own, `reported_credit`: the quality that it would have if they were true. The score stays the recomputed one.

    With `answer: code`, the answer is a program: it is run in a `sandbox` with `seconds` of processor time and
    `memory_mb`, and what it returns is verified in the same way. An answer without a program scores 0, and so does a
    program that crashes or exceeds its limits; the notes say why.
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
    partial_credit: bool = (
        False  # whether reported violations give a credit too, as a metric in addition to the quality
    )
    answer: Literal["point", "code"] = "point"
    sandbox: Sandbox = "bubblewrap"  # for code; none: it runs with the user's rights
    seconds: Annotated[float, msgspec.Meta(gt=0)] = SECONDS
    memory_mb: Annotated[float, msgspec.Meta(gt=0)] = MEMORY_MB

    def scales(self) -> dict[str, Scale]:
        """Return the scales, worst to best; the worst is None if unbounded."""
        steps = ("valid_json", "right_keys", "right_length", "right_types", "only_json")
        of_code = ("has_code", "code_ran") if self.answer == "code" else ()
        rates = ("instruction_following", *steps, "feasible", "status_right", *of_code)
        faults = ("echo", "truncated", "misreported_objective", "misreported_violations")
        gaps = ("relative_gap", "absolute_gap", "violation", "l2_distance")
        reported: dict[str, Scale] = {"reported_violation": (None, 0.0), "reported_credit": (0.0, 100.0)}
        return {
            **dict.fromkeys((*rates, "baseline_beaten"), (0.0, 1.0)),
            **dict.fromkeys(faults, (1.0, 0.0)),
            **dict.fromkeys(gaps, (None, 0.0)),
            **(reported if self.partial_credit else {}),
            "normalised_gap": (1.0, 0.0),
            "format_steps": (0.0, float(len(STEPS))),
            "quality": (0.0, 100.0),
        }

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        try:
            problem_of(case)
        except (KeyError, TypeError, msgspec.ValidationError):
            yield "the optimisation scorer needs a problem and its baseline; use `suite: optimisation`"
        if self.answer == "code" and (reason := missing_sandbox(self.sandbox)):
            yield reason

    async def score(self, context: ScoreContext) -> Score | Unscored:
        problem, baseline = problem_of(context.case)
        if self.answer == "code":
            return await self._score_code(context, problem, baseline)
        truncated = context.finish_reason == "length"
        n = len(baseline.x or ()) if problem is None else problem.n
        answered = read_answer(context.response, n, truncated=truncated, prompt=_asked(context))
        return self._scored(problem, baseline, answered)

    async def _score_code(
        self, context: ScoreContext, problem: OptimisationProblem | None, baseline: Baseline
    ) -> Score | Unscored:
        """Run the program in an answer, and score what it returns as if that were the answer."""
        if reason := await asyncio.to_thread(missing_sandbox, self.sandbox):
            return Unscored(kind="sandbox", message=reason)
        program, only_code, echo = find_program(context.response, _asked(context))
        n = len(baseline.x or ()) if problem is None else problem.n
        if program is None:
            answered = without_program(echo=echo, truncated=context.finish_reason == "length")
            why = f"there is no program in the answer ({answered.findings[0]})"
            return _with_code(self._scored(problem, baseline, answered), why, {"program": None}, ran=False)
        names = variable_names(problem) if problem else ()
        try:
            ran = await run_program(
                program, RUNNER, self.sandbox, seconds=self.seconds, memory_mb=self.memory_mb, task={"names": names}
            )
        except TimeoutError:
            message = f"the program used less than its {self.seconds:g} s of processor time, and still did not end"
            return Unscored(kind="timeout", message=message)
        if problem is None and baseline.x is None:  # of a published benchmark, only the value is known
            answered, failure = valued_by(ran.result, only_code=only_code)
        else:
            answered, failure = answered_by(ran.result, n, only_code=only_code)
        if context.finish_reason == "length":
            answered = msgspec.structs.replace(answered, findings=("truncated", *answered.findings))
        details = {"program": program, "output": clipped(ran.output, _MAX_OUTPUT), "sandbox": self.sandbox}
        return _with_code(self._scored(problem, baseline, answered), failure, details, ran=not failure)

    def _scored(self, problem: OptimisationProblem | None, baseline: Baseline, answered: Answered) -> Score:
        tolerance = self.tolerance or (1e-6 if problem is None else problem.tolerance)
        if problem is None:
            verified = compare_with_baseline(baseline, answered)
        else:
            verified = verify(problem, baseline, answered, tolerance=tolerance, report_tolerance=self.report_tolerance)
        credit = _reported(answered, verified, tolerance) if self.partial_credit else {}
        return Score(
            value=min(1.0, max(0.0, verified.quality / 100)),
            confidence=1.0 if baseline.certified else None,
            notes=verified.note,
            raw=verified.quality,
            max=100.0,
            details={"findings": list(answered.findings), **_details(answered, verified, baseline)},
            metrics={**_metrics(answered, verified), **credit},
        )


def _with_code(score: Score, failure: str, details: dict[str, Any], *, ran: bool) -> Score:
    """Add what is known of the program to a score; why it returned nothing comes first."""
    metrics = {**score.metrics, "has_code": float(details["program"] is not None), "code_ran": float(ran)}
    return msgspec.structs.replace(
        score,
        notes=failure or score.notes,
        details={**(score.details or {}), **details},
        metrics=metrics,
    )


def problem_of(case: Case) -> tuple[OptimisationProblem | None, Baseline]:
    """Return the problem and the baseline stored in a case; None if only a baseline is known."""
    data: dict[str, Any] = case.metadata or {}
    problem = data.get("problem")
    return None if problem is None else msgspec.convert(problem, OptimisationProblem), msgspec.convert(
        data["baseline"], Baseline
    )


def _asked(context: ScoreContext) -> str:
    """Return all that was sent, without which an echo looks like an answer."""
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


def _reported(answered: Answered, verified: Verified, tolerance: float) -> dict[str, float]:
    """Return the violation that an answer reports, and what it would be worth with it; nothing if it reports none."""
    credit = reported_credit(verified, answered.violations, tolerance)
    violation = answered.violations if answered.x is not None else None
    values = {"reported_violation": violation, "reported_credit": credit}
    return {name: value for name, value in values.items() if value is not None}


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
