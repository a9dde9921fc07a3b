"""The result of a series as a page in the terminal."""

from __future__ import annotations

from fairtrial.analyse.series_summary import SeriesSummary
from fairtrial.cli.compare_page import print_comparisons
from fairtrial.cli.console import Console
from fairtrial.cli.layout import QUIET, print_facts, print_wrapped
from fairtrial.cli.tables import table
from fairtrial.present.words.series import SERIES_COLUMNS, series_cells
from fairtrial.text.printable import counted


def print_series(summary: SeriesSummary, *, plain: bool = False) -> None:
    """Print the result of a series: the verdict on all of its answers, then how much the means of its runs vary."""
    console = Console()
    if summary.comparisons is not None:
        print_comparisons(summary.comparisons, plain=plain)
        console.print()
    ranked = sorted(summary.arms.items(), key=lambda item: -item[1].mean)
    console.print(table(SERIES_COLUMNS, (series_cells(arm, scores) for arm, scores in ranked)))
    console.print()
    states = "" if set(summary.statuses) == {"completed"} else f" ({', '.join(summary.statuses)})"
    facts = [summary.suite, f"series {summary.series_id}", f"{counted(len(summary.run_ids), 'run')}{states}"]
    print_facts(console, facts)
    print_wrapped(console, "Intervals are over runs: how much a mean varies when the same cases are run again.", QUIET)
    if len({*summary.statuses}) > 1 or summary.statuses[0] not in ("completed", "incomplete"):
        print_wrapped(console, "Runs that ended early are not included in these numbers.", "bright_yellow")
