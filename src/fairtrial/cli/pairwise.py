"""`fairtrial pairwise`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.text import Text

from fairtrial.analyse.pairs import PairsSummary
from fairtrial.cli.asking import load_dotenv_of
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.start import open_store, run_coroutine
from fairtrial.cli.tables import table
from fairtrial.core.formatting import money
from fairtrial.present.words.judges import order_line, pair_cells
from fairtrial.reports.json import pairs_document
from fairtrial.text.printable import counted, printable
from fairtrial.workflows.pairwise import apair

_COLUMNS = ("arm", "against", "wins", "ties", "losses", "win rate", "95 % CI")


def judge_pairs(
    run: str,
    judge: str | None,
    arms: tuple[str, str] | None,
    instructions: str,
    store: str | None,
    as_json: bool,
    quiet: bool,
    **overrides: Any,
) -> int:
    """Let judges compare the answers of a run, and print what they prefer."""
    opened = open_store(store)
    load_dotenv_of(run, opened)
    with _progress(quiet) as watch:
        summary = run_coroutine(
            apair(
                run,
                judge=judge,
                arms=arms or (),
                instructions=instructions,
                overrides=overrides,
                store=opened,
                watch=watch,
            )
        )
    if as_json:
        print_json(pairs_document(summary))
    elif not quiet:
        print_pairs(summary)
    return 2 if summary.exhausted or summary.failures else 0


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """Show a counter on stderr if it is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("pairs compared"), TextColumn("{task.completed}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("pairs", total=None)
        yield lambda count: bar.advance(task, count)


def print_pairs(summary: PairsSummary) -> None:
    """Print which arm each judge prefers, and how much the order influences the judge."""
    console = Console()
    if not summary.pairs:
        console.print("nothing to compare: no case was answered by two of these arms")
        return
    for judge in summary.judges:
        heading = f"judged by {judge.judge}, {counted(judge.calls, 'call')}, {money(judge.cost)}"
        console.print(Text(printable(heading), style="bold"))
        rows = (pair_cells(pair) for pair in summary.pairs if pair.judge == judge.judge)
        console.print(table(_COLUMNS, rows, names=("arm", "against")))
        console.print(Text(order_line(judge)))
        console.print()
    for message, count in summary.failures:
        console.print(Text(f"{count} × no verdict: {printable(message)}", style="red"))
    if summary.exhausted:
        console.print("budget reached; run the same command with a larger --budget-usd to continue")
