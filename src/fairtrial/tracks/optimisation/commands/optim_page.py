"""What `fairtrial optim report` and `optim evaluate` print."""

from __future__ import annotations

from collections.abc import Iterable

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
    report, console = report.shown(), Console()
    _print_lines(console, [f"run {report.run_id} · {report.suite}"], "dim")
    _print_tables(console, report, by)
    _print_lines(console, [composite_words(report), second_opinion(report)], "dim")
    _print_lines(console, warnings(report), "yellow")
    if report.comparisons is not None:
        console.print()
        print_comparisons(report.comparisons, details=details, titled=False)
        _print_lines(console, interaction_lines(report))
    if details:
        _print_format(console, report)


def print_summary(report: OptimisationReport) -> None:
    """Print what a run of prompt styles ends with: the headline and the guide's tables."""
    report, console = report.shown(), Console()
    _print_tables(console, report, None)
    _print_lines(console, [composite_words(report)], "dim")
    _print_lines(console, warnings(report), "yellow")


def _print_lines(console: Console, lines: Iterable[str], style: str = "") -> None:
    for line in lines:
        console.print(Text(printable(line), style=style))


def _print_tables(console: Console, report: OptimisationReport, by: str | None) -> None:
    """Print the headline, then every style on all problems, and on each kind of them if one is named."""
    _print_lines(console, [headline(report)], "bold")
    console.print()
    _print_slices(console, [(arm.arm, arm.overall) for arm in report.arms])
    for kind in report.kinds(by) if by else ():
        _print_lines(console, [f"\n{kind_words(by or '', kind)}"], "bold")
        _print_slices(console, [(arm.arm, arm.by[by][kind]) for arm in report.arms if by and kind in arm.by[by]])
    _print_lines(console, [f"{spread_words(report)}; gap: {gap_words(report)}"], "dim")
    _print_gaps(console, report, by)


def _print_gaps(console: Console, report: OptimisationReport, by: str | None) -> None:
    groups = gap_table(report, by or "difficulty")
    names = [one.name for one in gap_measures(report)]
    for group in groups if by else groups[:1]:
        _print_lines(console, [f"\n{group.title}" if by else ""], "bold")
        for at in range(0, len(names), _WIDE):
            rows = [
                [row.arm, *("\n".join(filter(None, cell)) for cell in row.cells[at : at + _WIDE])] for row in group.rows
            ]
            console.print(table(("arm", *names[at : at + _WIDE]), rows))
    if groups:
        _print_lines(console, [f"{gap_note(report)} {GAP_WORDS}"], "dim")


def _print_slices(console: Console, parts: list[tuple[str, Slice]]) -> None:
    rows = [[name, *("\n".join(filter(None, cell)) for cell in shown_cells(part, _DIGITS))] for name, part in parts]
    console.print(table(_COLUMNS, rows))


def _print_format(console: Console, report: OptimisationReport) -> None:
    columns, rows = format_table(report)
    if rows:
        _print_lines(console, ["\nAnswers that kept the format up to each step"], "bold")
        console.print(table(columns, rows))
    _print_lines(console, length_lines(report))
