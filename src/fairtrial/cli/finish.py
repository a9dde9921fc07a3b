"""The last step of every command that runs trials: write the files, print the table or JSON, return the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from fairtrial.analyse import Run

_EXIT_CODES = {"completed": 0, "stopped": 0, "interrupted": 130}


def check_outputs(outputs: Sequence[str]) -> None:
    """Raise an error, before anything is run, if an output file cannot be written."""
    from fairtrial.core.errors import FairtrialError
    from fairtrial.reports.formats import format_of

    for output in outputs:
        format_of(Path(output))
        if not Path(output).absolute().parent.is_dir():
            raise FairtrialError(f"{output} cannot be written: the folder {Path(output).parent} does not exist")


def exit_code(status: str) -> int:
    """Return the exit code for a run's status: 2 means incomplete and resumable."""
    return _EXIT_CODES.get(status, 2)


def finish(
    run: Run,
    *,
    outputs: Sequence[str] = (),
    as_json: bool = False,
    quiet: bool = False,
    series: Sequence[Run] = (),
) -> int:
    """Report a run, and the series that it completes if any, and return the exit code."""
    from fairtrial.reports.export import export

    summary = run.summary()
    for output in outputs:
        export(run, output)
    if as_json:
        from fairtrial.cli.options import print_json
        from fairtrial.reports.json import document

        print_json({**document(summary), **_series_entry(series)})
    if not quiet:
        from fairtrial.cli.display import next_step, print_summary

        if not as_json:
            print_summary(summary)
            _print_series(series)
        for output in outputs:
            click.echo(f"written: {output}", err=True)
        if step := next_step(summary):
            click.echo(step, err=True)
    sys.stdout.flush()
    return exit_code(summary.status)


def _series_entry(series: Sequence[Run]) -> dict[str, Any]:
    if not series:
        return {}
    from fairtrial.analyse.series_summary import summarise_series
    from fairtrial.reports.json import series_document

    return {"series": series_document(summarise_series(series))}


def _print_series(series: Sequence[Run]) -> None:
    if not series:
        return
    from fairtrial.analyse.series_summary import summarise_series
    from fairtrial.cli.display import print_series

    click.echo()
    print_series(summarise_series(series))
