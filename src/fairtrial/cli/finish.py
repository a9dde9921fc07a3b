"""The last step of every command that runs trials: write the files, print the table or JSON, return the exit code."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairtrial.analyse.kind_means import by_kind
from fairtrial.analyse.series_summary import summarise_series
from fairtrial.cli.options import in_store, print_json
from fairtrial.cli.run_page import print_next, print_rest, print_run
from fairtrial.cli.series_page import print_series
from fairtrial.core.errors import FairtrialError
from fairtrial.reports.export import export
from fairtrial.reports.formats import format_of
from fairtrial.reports.json import document, kinds_document, series_document

if TYPE_CHECKING:
    from fairtrial.analyse import Run
    from fairtrial.analyse.summary import RunSummary
    from fairtrial.reports.format import Format

_EXIT_CODES = {"completed": 0, "stopped": 0, "interrupted": 130}


def check_outputs(outputs: Sequence[str], form: Format | None = None) -> None:
    """Raise an error, before anything is run, if an output file cannot be written."""

    for output in outputs:
        if output == "-":
            raise click.UsageError("-o - works with `fairtrial export` alone: name a file, or use --json")
        if form is None:
            format_of(Path(output))
        if reason := _why_not_writable(Path(output), folder=form is not None and form.folder):
            raise FairtrialError(f"{output} cannot be written: {reason}")


def _why_not_writable(path: Path, *, folder: bool = False) -> str:
    """Return why a file cannot be written; empty if it can. Files are replaced as a whole, so the folder matters."""
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist"
    if path.is_dir() and not folder:
        return "it is a folder"
    try:
        with tempfile.TemporaryFile(dir=path.parent, prefix=".fairtrial-"):
            return ""
    except OSError as error:
        return f"{error.strerror or error} (in the folder {path.parent})"


def exit_code(status: str) -> int:
    """Return the exit code for a run's status: 2 means incomplete and resumable."""
    return _EXIT_CODES.get(status, 2)


class Ending:
    """How a command that runs trials ends: the files that it writes, and what it prints."""

    def __init__(
        self,
        *,
        outputs: Sequence[str] = (),
        as_json: bool = False,
        quiet: bool = False,
        plain: bool = False,
        show_result: Callable[[Run], bool] | None = None,
    ) -> None:
        """`show_result` prints what people came for in place of the run's page, and says whether it could."""
        self._outputs, self._as_json, self.quiet, self._plain = outputs, as_json, quiet, plain
        self._show_result = show_result
        self._started = time.monotonic()

    def report(self, run: Run, *, timed: bool = False, series: Sequence[Run] = ()) -> int:
        """Report a run, or the series that it completes if any, and return the exit code."""

        summary = run.summary()
        problems = {output: problem for output in self._outputs if (problem := _write(run, output))}
        if self._as_json:
            print_json({**document(summary), **kinds_document(by_kind(run)), **_series_entry(series)})
        if not self.quiet:
            self._print(run, summary, series, timed=timed)
            for output in self._outputs:
                if output not in problems:
                    click.echo(f"written: {output}", err=True)
        sys.stdout.flush()
        for problem in problems.values():
            command = in_store(f"fairtrial export {run.id} -o FILE")
            click.echo(f"error: {problem}; the run is saved: `{command}` writes it", err=True)
        return 1 if problems else exit_code(summary.status)

    def _print(self, run: Run, summary: RunSummary, series: Sequence[Run], *, timed: bool) -> None:

        if series and not self._as_json:
            _print_series(series, plain=self._plain)
        elif not self._as_json and self._show_result is not None and self._show_result(run):
            print_rest(run, summary, seconds=time.monotonic() - self._started if timed else None)
        elif not self._as_json:
            seconds = time.monotonic() - self._started if timed else None
            print_run(run, summary, by_kind(run), seconds=seconds, plain=self._plain)
        sys.stdout.flush()
        print_next(run, summary, needed=self._as_json or bool(series))


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
