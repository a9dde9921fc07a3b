"""Printed results of runs, series and comparisons: tables, notes and next steps."""

from __future__ import annotations

from collections.abc import Sequence

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.kind_means import KindMeans
from fairtrial.analyse.lines import arm_lines, notes
from fairtrial.analyse.series_summary import SERIES_COLUMNS, SeriesSummary, series_cells, series_line
from fairtrial.analyse.summary import ArmSummary, RunSummary, ranked
from fairtrial.analyse.wording.comparisons import (
    brief_lines,
    detail_lines,
    metric_lines,
    pair_cells,
    pair_columns,
    sentence,
)
from fairtrial.analyse.wording.comparisons import subject_line as comparison_headline
from fairtrial.analyse.wording.kinds import NOTE, KindTable, kind_tables
from fairtrial.analyse.wording.runs import arm_cells, arm_columns, failure_line, headline, reporting_line
from fairtrial.cli.console import Console
from fairtrial.cli.tables import shortened, table
from fairtrial.core.text import counted, printable

_MAX_FAILURES = 5
_LONG_NAME = 24
_MAX_KINDS = 8
_MIN_CELL = 16  # room for the name of an arm above its means


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


def print_summary(summary: RunSummary, kinds: KindMeans | None = None, *, whole: bool = False) -> None:
    """Print the result of a run, and its means by kind of case: every kind, or the largest ones."""
    console = Console(highlight=False)
    console.print(Text(printable(headline(summary)), style="bold"))
    console.print()
    console.print(summary_table(summary))
    console.print()
    if kinds is not None:
        _print_kinds(console, summary, kinds, whole=whole)
    for arm in summary.arms:
        _print_arm(console, summary, arm)
    for note in notes(summary):
        console.print(Text(note, style="yellow"))
    _print_failures(console, summary.failures)


def _print_arm(console: Console, summary: RunSummary, arm: ArmSummary) -> None:
    """Print what the table does not say about an arm; with its numbers if its name is too long for the table."""
    lines = arm_lines(summary, arm)
    if len(arm.arm) > _LONG_NAME:
        console.print(Text(reporting_line(arm)), soft_wrap=True)
    elif lines:
        console.print(Text(f"{arm.arm}:"), soft_wrap=True)
    for line in lines:
        console.print(Text(f"  {line}"), soft_wrap=True)


def _print_kinds(console: Console, summary: RunSummary, kinds: KindMeans, *, whole: bool) -> None:
    """Print the means by kind of case: every kind and arm, or the largest kinds and the best arms that fit."""
    names = [arm.arm for arm in ranked(summary.arms)]
    tables = kind_tables(kinds, names, most=None if whole else _MAX_KINDS, whole=whole)
    for shown in tables:
        parts = _parts(shown, console.width)
        for part in parts if whole else parts[:1]:
            rows = [[row.kind, row.cases, *row.cells] for row in part.rows]
            heads = [_arm_head(arm) for arm in part.arms] if len(names) > 1 else ["score and 95% CI"]
            console.print(table((shown.by, "cases", *heads), rows, names=(shown.by,)))
            console.print()
        if not whole and (left_out := _left_out(shown, len(names) - len(parts[0].arms))):
            console.print(Text(f" {left_out}: --by {shown.by} shows all", style="dim"))
            console.print()
    if tables:
        console.print(Text(NOTE, style="dim"))
        console.print()


def _left_out(shown: KindTable, arms: int) -> str:
    """Say what the short table leaves out; empty if nothing."""
    kinds = counted(shown.more, "more group") if shown.more else ""
    others = counted(arms, "other arm") if arms else ""
    return f"and {' and '.join(filter(None, (kinds, others)))}" if kinds or others else ""


def _parts(shown: KindTable, width: int) -> list[KindTable]:
    """Divide a table by arms into tables that fit the terminal."""
    cell = max(_MIN_CELL, *(len(text) for row in shown.rows for text in row.cells))
    counts = max(len("cases"), *(len(row.cases) for row in shown.rows))
    kind = min(_LONG_NAME, max(len(shown.by), *(len(row.kind) for row in shown.rows)))
    most = max(1, (width - kind - counts - 4) // (cell + 2))
    return [
        shown._replace(
            arms=shown.arms[first : first + most],
            rows=[row._replace(cells=row.cells[first : first + most]) for row in shown.rows],
        )
        for first in range(0, len(shown.arms), most)
    ]


def _arm_head(arm: str) -> str:
    """Return an arm's name as the head of a narrow column: target and condition on lines of their own."""
    return "\n/".join(shortened(part, _MIN_CELL - 1) for part in arm.rsplit("/", 1))


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
    if summary.status == "completed" or summary.origin is not None:
        return None
    if summary.status == "stopped":
        run = summary.run_id
        return f"`fairtrial compare {run}` shows the verdict; `fairtrial resume {run}` runs the other cases too"
    waiting = sum(arm.waiting for arm in summary.arms)
    verb = "resume" if waiting else "retry"
    more = " --budget-usd MORE" if "budget" in (summary.reason or "") else ""
    return f"everything is saved; continue with `fairtrial {verb} {summary.run_id}{more}`"
