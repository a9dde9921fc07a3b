"""The table at a run's end, and what is said around it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairtrial.analyse.lines import arm_lines, notes
from fairtrial.analyse.summary import RunSummary
from fairtrial.analyse.words import arm_cells, arm_columns, failure_line, headline, reporting_line
from fairtrial.core.text import printable

_MOST_FAILURES = 5
_LONG_NAME = 24


def summary_table(summary: RunSummary) -> Table:
    """Every arm with its score and how far to trust it."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    columns = arm_columns(summary)
    for name in columns:
        left = name == "arm"
        table.add_column(name, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    ranked = sorted(summary.arms, key=lambda arm: -(arm.aggregate.mean or -1.0))
    long = any(len(arm.arm) > _LONG_NAME for arm in ranked)
    for arm in ranked:
        cells = arm_cells(summary, arm)
        if long:  # broken where the target ends and the condition begins, not anywhere
            cells[0] = cells[0].replace(f"/{arm.condition}", f"\n  /{arm.condition}")
        table.add_row(*(Text(cell) for cell in cells))
    return table


def print_summary(summary: RunSummary, *, stderr: bool = False) -> None:
    """The result of a run, for people."""
    console = Console(stderr=stderr, highlight=False)
    console.print(Text(printable(headline(summary)), style="bold"))
    console.print()
    console.print(summary_table(summary))
    console.print()
    for arm in summary.arms:
        console.print(Text(reporting_line(arm)), soft_wrap=True)
        for line in arm_lines(summary, arm):
            console.print(Text(f"  {line}"), soft_wrap=True)
    for note in notes(summary):
        console.print(Text(note, style="yellow"))
    _print_failures(console, summary.failures)


def _print_failures(console: Console, failures: Sequence[tuple[str, str, int]]) -> None:
    for failure in failures[:_MOST_FAILURES]:
        console.print(Text(f"  {printable(failure_line(failure))}", style="red"), soft_wrap=True)
    if len(failures) > _MOST_FAILURES:
        console.print(Text(f"  and {len(failures) - _MOST_FAILURES} more reasons", style="red"))


def next_step(summary: RunSummary) -> str | None:
    """What to do about a run that is not complete."""
    if summary.status == "completed":
        return None
    waiting = sum(arm.waiting for arm in summary.arms)
    verb = "resume" if waiting else "retry"
    more = " --budget-usd MORE" if "budget" in (summary.reason or "") else ""
    return f"everything is saved; go on with `fairtrial {verb} {summary.run_id}{more}`"
