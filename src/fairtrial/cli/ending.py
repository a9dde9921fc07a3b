"""The end of every command that runs trials: files are written, and the table or JSON is printed."""

from __future__ import annotations

import math
import shlex
import sys
import time
from collections.abc import Sequence
from typing import Any

import click

from fairtrial.analyse.kind_means import by_kind
from fairtrial.analyse.leaderboard import Leaderboard
from fairtrial.analyse.run import Run
from fairtrial.analyse.series_summary import summarise_series
from fairtrial.analyse.stopping import again_of
from fairtrial.analyse.summary import RunSummary
from fairtrial.cli.documents import print_json
from fairtrial.cli.options import EndingOptions, in_store
from fairtrial.cli.run_page import print_next, print_rest, print_run
from fairtrial.cli.series_page import print_series
from fairtrial.core.errors import FairtrialError
from fairtrial.reports.export import export
from fairtrial.reports.json import document, kinds_document, series_document
from fairtrial.stats.looks import more_for_another_look


def report(ending: EndingOptions, run: Run, *, timed: bool = False, series: Sequence[Run] = ()) -> str:
    """Report a run, or the series that it completes if any; return its status, or nothing if a file is missing."""
    summary = run.summary()
    problems = {output: problem for output in ending.outputs if (problem := _write(run, output))}
    if ending.as_json:
        print_json({**document(summary), **kinds_document(by_kind(run)), **_series_entry(series)})
    if not ending.quiet:
        _print(ending, run, summary, series, timed=timed)
        for output in ending.outputs:
            if output not in problems:
                click.echo(f"written: {output}", err=True)
    sys.stdout.flush()
    for problem in problems.values():
        command = in_store(f"fairtrial export {run.id} -o FILE")
        click.echo(f"error: {problem}; the run is saved: `{command}` writes it", err=True)
    return "" if problems else summary.status


def _print(ending: EndingOptions, run: Run, summary: RunSummary, series: Sequence[Run], *, timed: bool) -> None:
    board = None
    if series and not ending.as_json:
        _print_series(series, plain=ending.plain)
    elif not ending.as_json and ending.show_result is not None and ending.show_result(run):
        print_rest(run, summary, seconds=time.monotonic() - ending.started if timed else None)
    elif not ending.as_json:
        seconds = time.monotonic() - ending.started if timed else None
        board = print_run(run, summary, by_kind(run), seconds=seconds, plain=ending.plain)
    sys.stdout.flush()
    more = _more_cases(run, board, ending.file) if board is not None and ending.file is not None else []
    print_next(run, summary, needed=ending.as_json or bool(series), more=more)


def _more_cases(run: Run, board: Leaderboard, file: str) -> list[tuple[str, str]]:
    """Return the command that asks as many more cases as would settle what is open; none if all cases were asked."""
    selected = run.record.selected or {}
    asked = selected.get("limit") or selected.get("first")
    if board.to_settle is None or not asked or run.status != "completed":
        return []
    again = again_of(run.settings)
    times = more_for_another_look(again.look + 1 if again else 2)
    more = math.ceil(board.to_settle[2] * times) - asked
    command = f"fairtrial run {shlex.quote(file)} --more {more}"
    return [(command, f"{more:,} more cases: the next look")] if more > 0 else []


def _write(run: Run, output: str) -> str:
    """Write a file; return why that was not possible, because the result of a run must be shown all the same."""
    try:
        export(run, output)
    except FairtrialError as error:
        return str(error)
    return ""


def _series_entry(series: Sequence[Run]) -> dict[str, Any]:
    if not series:
        return {}

    return {"series": series_document(summarise_series(series))}


def _print_series(series: Sequence[Run], *, plain: bool) -> None:
    print_series(summarise_series(series), plain=plain)
