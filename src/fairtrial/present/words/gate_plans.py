"""What a gate can decide, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.core.formatting import number
from fairtrial.text.printable import counted

if TYPE_CHECKING:
    from fairtrial.analyse.gate_plan import ArmAgainstItself, ArmPlan, Noisy

COLUMNS = ("a merge that", "passed", "blocked", "cannot tell")


def plan_line(arm: ArmPlan, margin: float) -> str:
    """Say what the gate will catch."""
    sizes = f"{counted(arm.cases, 'case')} × {counted(arm.repeats, 'answer')}, margin {number(margin)}"
    if arm.caught is None:
        return f"{sizes}: no loss is blocked in 4 of 5 merges; one beyond the margin still does not pass."
    return f"{sizes}: a loss of {number(arm.caught)} points or more is blocked in at least 4 of 5 merges."


def plan_rows(arm: ArmPlan) -> list[list[str]]:
    """Return a row for each loss."""
    return [
        [
            f"loses {number(row.loss)} points" if row.loss else "changes nothing",
            share(row.passed),
            share(row.failed),
            share(row.unsure),
        ]
        for row in arm.outlooks
    ]


def plan_advice(arm: ArmPlan) -> str:
    """Say what would make more merges pass; empty if enough of them do."""
    if arm.outlooks[0].passed >= 0.8:
        return ""
    return (
        f"Too few merges that change nothing would pass: about {arm.cases_needed:,} cases let 4 of 5 pass, "
        "as would more answers to each case (--repeats) or a larger margin."
    )


def itself_lines(arm: ArmAgainstItself, margin: float) -> list[str]:
    """Say how the gate decides about an arm against itself."""
    low, high = arm.flips_ci95
    lines = [
        f"{counted(arm.cases, 'case')} × {counted(arm.repeats, 'answer')}, margin {number(margin)}: "
        f"against itself {share(arm.passed)} passed, {share(arm.failed)} blocked, {share(arm.unsure)} cannot tell.",
        f"Two gates on the same input disagree {share(arm.flips)} of the time "
        f"(95 % CI {100 * low:.0f} to {100 * high:.0f} %).",
    ]
    if arm.too_noisy:
        lines.append(
            f"That is too often for a gate: use about {arm.cases_needed:,} cases, more answers to each (--repeats), "
            "a larger margin, or less noisy cases."
        )
    if arm.noisy:
        lines.append("Noisiest cases: " + ", ".join(map(_noisy, arm.noisy)) + ".")
    return lines


def _noisy(case: Noisy) -> str:
    return f"{case.case} ({number(case.low)} to {number(case.high)} in {case.answers} answers)"


def share(value: float) -> str:
    """Return a simulated share: what never happened in hundreds of merges is not impossible."""
    if 0 < value < 0.01:
        return "< 1 %"
    return f"{100 * value:.0f} %"
