"""What `fairtrial optim report` and `optim evaluate` print."""

from __future__ import annotations

from rich.text import Text

from fairtrial.cli.compare_page import print_comparisons
from fairtrial.cli.console import Console
from fairtrial.cli.tables import table
from fairtrial.text.printable import printable
from fairtrial.tracks.optimisation.analysis import OptimisationReport, Slice
from fairtrial.tracks.optimisation.style_tables import format_table, gap_measures, gap_table, kind_words, shown_cells
from fairtrial.tracks.optimisation.words import (
    GAP_WORDS,
    composite_words,
    gap_note,
    gap_words,
    headline,
    interaction_lines,
    length_lines,
    second_opinion,
    spread_words,
    warnings,
)

_COLUMNS = ("arm", "followed %", "feasible %", "gap", "composite", "quality comp.")
_DIGITS = 2  # a terminal has no room for more
_WIDE = 4  # columns of gaps, likewise


def print_report(report: OptimisationReport, *, by: str | None = None, details: bool = False) -> None:
    """Print the headline, the tables and what else there is to know."""
    report = report.shown()
    console = Console()
    console.print(Text(printable(f"run {report.run_id} · {report.suite}"), style="dim"))
    console.print(Text(printable(headline(report)), style="bold"))
    console.print()
    _print_tables(console, report, by)
    for line in (composite_words(report), second_opinion(report)):
        console.print(Text(printable(line), style="dim"))
    for line in warnings(report):
        console.print(Text(printable(line), style="yellow"))
    if report.comparisons is not None:
        console.print()
        print_comparisons(report.comparisons, details=details, titled=False)
        for line in interaction_lines(report):
            console.print(Text(printable(line)))
    if details:
        _print_format(console, report)


def print_summary(report: OptimisationReport) -> None:
    """Print what a run of prompt styles ends with: the headline and the guide's tables."""
    report = report.shown()
    console = Console()
    console.print(Text(printable(headline(report)), style="bold"))
    console.print()
    _print_tables(console, report, None)
    console.print(Text(printable(composite_words(report)), style="dim"))
    for line in warnings(report):
        console.print(Text(printable(line), style="yellow"))


def _print_tables(console: Console, report: OptimisationReport, by: str | None) -> None:
    """Print every style on all problems, and on each kind of them if one is named."""
    _print_slices(console, [(arm.arm, arm.overall) for arm in report.arms])
    for kind in report.kinds(by) if by else ():
        console.print(Text(printable(f"\n{kind_words(by or '', kind)}"), style="bold"))
        _print_slices(console, [(arm.arm, arm.by[by][kind]) for arm in report.arms if by and kind in arm.by[by]])
    console.print(Text(printable(f"{spread_words(report)}; gap: {gap_words(report)}"), style="dim"))
    _print_gaps(console, report, by)


def _print_gaps(console: Console, report: OptimisationReport, by: str | None) -> None:
    """Print relative and absolute gaps, violations and distances next to the gap of 0–1."""
    groups = gap_table(report, by or "difficulty")
    names = [one.name for one in gap_measures(report)]
    for group in groups if by else groups[:1]:
        console.print(Text(printable(f"\n{group.title}" if by else ""), style="bold"))
        for at in range(0, len(names), _WIDE):
            rows = [
                [row.arm, *("\n".join(filter(None, cell)) for cell in row.cells[at : at + _WIDE])] for row in group.rows
            ]
            console.print(table(("arm", *names[at : at + _WIDE]), rows))
    if groups:
        console.print(Text(printable(f"{gap_note(report)} {GAP_WORDS}"), style="dim"))


def _print_slices(console: Console, parts: list[tuple[str, Slice]]) -> None:
    rows = [[name, *("\n".join(filter(None, cell)) for cell in shown_cells(part, _DIGITS))] for name, part in parts]
    console.print(table(_COLUMNS, rows))


def _print_format(console: Console, report: OptimisationReport) -> None:
    columns, rows = format_table(report)
    if rows:
        console.print(Text("\nAnswers that kept the format up to each step", style="bold"))
        console.print(table(columns, rows))
    for line in length_lines(report):
        console.print(Text(printable(line)))
