"""The last step of every command that runs trials: write the files, print the table or JSON, return the exit code."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import EndingOptions
from fairtrial.core.errors import FairtrialError
from fairtrial.reports.formats import format_of

if TYPE_CHECKING:
    from fairtrial.analyse.run import Run
    from fairtrial.reports.format import Format

_EXIT_CODES = {"completed": 0, "stopped": 0, "interrupted": 130}


def check_outputs(outputs: Sequence[str], form: Format | None = None) -> None:
    """Raise an error, before anything is run, if an output file cannot be written."""
    for output in outputs:
        if output == "-":
            raise click.UsageError("-o - works with `fairtrial export` alone: name a file, or use --json")
        if form is None:
            format_of(Path(output))
        if reason := why_not_writable(Path(output), folder=form is not None and form.folder):
            raise FairtrialError(f"{output} cannot be written: {reason}")


def why_not_writable(path: Path, *, folder: bool = False) -> str:
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


class Ending(EndingOptions):
    """How a command that runs trials ends."""

    def report(self, run: Run, *, timed: bool = False, series: Sequence[Run] = ()) -> int:
        """Report a run, or the series that it completes if any, and return the exit code."""
        if self.quiet and not self.as_json and not self.outputs:
            return exit_code(run.summary().status)
        from fairtrial.cli.ending import report  # analysis: numpy must not delay the first call

        status = report(self, run, timed=timed, series=series)
        return exit_code(status) if status else 1
