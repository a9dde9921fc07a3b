"""The lines below a run's table, the same in the terminal and in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.present.words.judges import judging_notes, label_lines, second_lines, second_note
from fairtrial.present.words.limits import limit_lines
from fairtrial.present.words.runs import (
    answered_lines,
    left_out_lines,
    lift_lines,
    metric_lines,
    pass_lines,
    refusal_lines,
    run_notes,
    tool_lines,
)
from fairtrial.present.words.solving import solving_lines

if TYPE_CHECKING:
    from fairtrial.analyse.summary import ArmSummary, RunSummary


def arm_lines(summary: RunSummary, arm: ArmSummary) -> list[str]:
    """Return everything known about an arm besides its score."""
    return [*metric_lines(arm), *other_lines(summary, arm)]


def other_lines(summary: RunSummary, arm: ArmSummary) -> list[str]:
    """Return what is known about an arm besides its score and metrics."""
    return [
        *pass_lines(summary, arm),
        *solving_lines(arm),
        *left_out_lines(arm),
        *answered_lines(arm),
        *refusal_lines(arm),
        *limit_lines(arm),
        *lift_lines(summary, arm),
        *tool_lines(arm),
        *label_lines(arm),
        *second_lines(arm),
    ]


def notes(summary: RunSummary) -> list[str]:
    """Return everything a reader should know before trusting the table."""
    return [*run_notes(summary), *second_note(summary), *judging_notes(summary.judging)]
