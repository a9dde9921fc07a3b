"""What `fairtrial gate` prints."""

from __future__ import annotations

from rich.text import Text

from fairtrial.analyse.gate import Gate
from fairtrial.analyse.gate_changes import BaselineChanges
from fairtrial.analyse.gate_plan import AgainstItself, GatePlan
from fairtrial.cli.console import Console
from fairtrial.cli.tables import table
from fairtrial.present.words.gate_plans import COLUMNS, itself_lines, plan_advice, plan_line, plan_rows
from fairtrial.present.words.gates import check_line, reuse_words
from fairtrial.text.printable import printable

_STYLES = {"passed": "green", "failed": "red", "cannot tell": "yellow"}
_MOST_FLAKY = 10


def print_gate(result: Gate, changes: BaselineChanges | None = None) -> None:
    """Print every check and the result."""
    console = Console()
    for check in result.checks:
        console.print(Text(printable(check_line(check)), style=_STYLES[check.result]))
    for line in _listed(result):
        console.print(Text(printable(line)))
    for line in (result.compared_with, result.method):
        if line:
            console.print(Text(printable(f"{line}."), style="dim"))
    for note in result.notes:
        console.print(Text(printable(note), style="yellow"))
    if changes is not None:
        for line in _change_lines(changes):
            console.print(Text(printable(line)))
    exit_notes = (
        {0: " (--unsure pass: exit 0)", 100: " (--unsure fail: exit 100)"} if result.result == "cannot tell" else {}
    )
    verdict = f"gate {result.result}{exit_notes.get(result.exit_code, '')}"
    console.print(Text(verdict, style=f"bold {_STYLES[result.result]}"))


def _listed(result: Gate) -> list[str]:
    """Return the cases that are flaky or in quarantine."""
    lines = []
    if result.flaky:
        shown = ", ".join(f"{one.case} ({one.passed} of {one.answers})" for one in result.flaky[:_MOST_FLAKY])
        more = f" and {result.flaky_count - _MOST_FLAKY} more" if result.flaky_count > _MOST_FLAKY else ""
        lines.append(f"Flaky without any change: {shown}{more}.")
    if result.quarantined:
        lines.append(f"In quarantine, not counted: {', '.join(result.quarantined)}.")
    return lines


def _change_lines(changes: BaselineChanges) -> list[str]:
    changed = f"Changed: {'; '.join(changes.changed)}. " if changes.changed else ""
    return [f"{changed}{reuse_words(changes)}"]


def print_plan(plan: GatePlan) -> None:
    """Print what a gate can decide."""
    console = Console()
    for arm in plan.arms:
        console.print(Text(arm.arm, style="bold"), soft_wrap=True)
        console.print(Text(plan_line(arm, plan.margin)))
        console.print(table(COLUMNS, plan_rows(arm), names=COLUMNS[:1]))
        if advice := plan_advice(arm):
            console.print(Text(advice, style="yellow"))
        console.print()


def print_itself(itself: AgainstItself) -> None:
    """Print how often a gate contradicts itself."""
    console = Console()
    for arm in itself.arms:
        console.print(Text(arm.arm, style="bold"), soft_wrap=True)
        for line in itself_lines(arm, itself.margin):
            console.print(Text(printable(line)))
        console.print()
