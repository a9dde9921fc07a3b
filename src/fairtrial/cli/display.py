"""Printed results of runs, series and comparisons: tables, notes and next steps."""

from __future__ import annotations

from collections.abc import Sequence

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.lines import arm_lines, notes
from fairtrial.analyse.series_summary import SERIES_COLUMNS, SeriesSummary, series_cells, series_line
from fairtrial.analyse.summary import RunSummary, ranked
from fairtrial.analyse.wording.comparisons import (
    brief_lines,
    detail_lines,
    metric_lines,
    pair_cells,
    pair_columns,
    sentence,
)
from fairtrial.analyse.wording.comparisons import headline as comparison_headline
from fairtrial.analyse.wording.runs import arm_cells, arm_columns, failure_line, headline, reporting_line
from fairtrial.cli.console import Console
from fairtrial.cli.tables import table
from fairtrial.core.text import printable

_MAX_FAILURES = 5
_LONG_NAME = 24


def summary_table(summary: RunSummary) -> Table:
    """Return a table with every arm, its score and its uncertainty."""
    arms = ranked(summary.arms)
    rows = [arm_cells(summary, arm) for arm in arms]
    if any(len(arm.arm) > _LONG_NAME for arm in arms):
        for arm, cells in zip(
            arms, rows, strict=True
        ):  # break long names before the condition, not at an arbitrary place
            cells[0] = cells[0].replace(f"/{arm.condition}", f"\n  /{arm.condition}")
    return table(arm_columns(summary), rows)


def print_summary(summary: RunSummary, *, stderr: bool = False) -> None:
    """Print the result of a run."""
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


def print_series(summary: SeriesSummary) -> None:
    """Print the result of a series."""
    console = Console(highlight=False)
    states = "" if set(summary.statuses) == {"completed"} else f" ({', '.join(summary.statuses)})"
    heading = f"series {summary.series_id} · {summary.suite} · {len(summary.run_ids)} runs{states}"
    console.print(Text(printable(heading), style="bold"))
    console.print()
    ranked = sorted(summary.arms.items(), key=lambda item: -item[1].mean)
    console.print(table(SERIES_COLUMNS, (series_cells(arm, scores) for arm, scores in ranked)))
    console.print()
    for arm, scores in summary.arms.items():
        console.print(Text(series_line(arm, scores)), soft_wrap=True)
    if len({*summary.statuses}) > 1 or summary.statuses[0] not in ("completed", "incomplete"):
        console.print(Text("Runs that ended early are not included in these numbers.", style="yellow"))
    console.print("Intervals are over runs: how much a mean varies when the same cases are run again.")
    if summary.comparisons is not None:
        console.print()
        print_comparisons(summary.comparisons)


def print_comparisons(comparisons: Comparisons, *, details: bool = False) -> None:
    """Print the comparisons with their verdicts."""
    console = Console(highlight=False)
    console.print(Text(printable(comparison_headline(comparisons)), style="bold"), soft_wrap=True)
    console.print()
    console.print(table(pair_columns(comparisons), map(pair_cells, comparisons.pairs), names=("arm", "against")))
    console.print()
    for pair in comparisons.pairs:
        console.print(Text(printable(sentence(pair, comparisons.margin)), style="bold"))
        lines = detail_lines(pair) if details else brief_lines(pair)
        lines += metric_lines(comparisons, pair, details=details)
        for line in lines:
            console.print(Padding(Text(printable(line)), (0, 0, 0, 2)))
    for note in comparisons.notes:
        console.print(Text(printable(note), style="yellow"))
    if not details:
        console.print(Text("--details shows every test, and the difference by group of cases", style="dim"))


def _print_failures(console: Console, failures: Sequence[tuple[str, str, int]]) -> None:
    for failure in failures[:_MAX_FAILURES]:
        console.print(Text(f"  {printable(failure_line(failure))}", style="red"), soft_wrap=True)
    if len(failures) > _MAX_FAILURES:
        console.print(Text(f"  and {len(failures) - _MAX_FAILURES} more reasons", style="red"))


def next_step(summary: RunSummary) -> str | None:
    """Return what to do next about a run that is not complete, or None."""
    if summary.status == "completed":
        return None
    if summary.status == "stopped":
        run = summary.run_id
        return f"`fairtrial compare {run}` shows the verdict; `fairtrial resume {run}` runs the other cases too"
    waiting = sum(arm.waiting for arm in summary.arms)
    verb = "resume" if waiting else "retry"
    more = " --budget-usd MORE" if "budget" in (summary.reason or "") else ""
    return f"everything is saved; continue with `fairtrial {verb} {summary.run_id}{more}`"
