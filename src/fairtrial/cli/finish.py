"""What every command that works on a run does in the end: files, table or JSON, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from fairtrial.analyse import Run

_CODES = {"completed": 0, "stopped": 0, "interrupted": 130}


def check_outputs(outputs: Sequence[str]) -> None:
    """Refuse a file that cannot be written before anything is run."""
    from fairtrial.core.errors import FairtrialError
    from fairtrial.reports.formats import format_of

    for output in outputs:
        format_of(Path(output))
        if not Path(output).absolute().parent.is_dir():
            raise FairtrialError(f"{output} cannot be written: there is no folder {Path(output).parent}")


def exit_code(status: str) -> int:
    """What a run's status means to a shell: 2 is incomplete and resumable."""
    return _CODES.get(status, 2)


def finish(
    run: Run,
    *,
    outputs: Sequence[str] = (),
    as_json: bool = False,
    quiet: bool = False,
    series: Sequence[Run] = (),
) -> int:
    """Report a run, and the series that it ends, and return the exit code."""
    from fairtrial.reports.export import export

    summary = run.summary()
    for output in outputs:
        export(run, output)
    if as_json:
        from fairtrial.cli.options import print_json
        from fairtrial.reports.json import document

        print_json({**document(summary), **_series_part(series)})
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


def _series_part(series: Sequence[Run]) -> dict[str, Any]:
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
