"""`fairtrial store`."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.options import json_option, option, print_json, store_options
from fairtrial.store import Store
from fairtrial.store.checking import check_store
from fairtrial.store.copying import copy_calibrations, copy_runs, find_copied
from fairtrial.text.printable import counted


@click.group()
def command() -> None:
    """Maintain the store."""


@command.command()
@option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Copy all readable rows of a SQLite file to a new one.",
)
@store_options
def check(save: Path | None, store: str | None, as_json: bool) -> int:
    """Check that every row of the store can be read, and save those that can."""
    import msgspec

    result = check_store(store, save)
    if as_json:
        print_json({**msgspec.to_builtins(result), "whole": result.whole})
        return 0 if result.whole else 1
    rows = sum(table.rows for table in result.tables)
    if result.whole:
        click.echo(f"{result.path} is intact: {rows} rows in {len(result.tables)} tables")
    else:
        click.echo(f"{result.path} is damaged; {rows} rows can be read")
        for problem in result.problems[:5]:
            click.echo(f"  {problem}")
        for table in result.tables:
            if table.lost:
                click.echo(f"  {table.table}: {table.rows} rows can be read, {table.lost} cannot")
    if result.saved:
        click.echo(f"saved: {result.saved}")
    elif not result.whole and "://" not in result.path:
        click.echo("use --save FILE to copy the readable rows to a new store")
    return 0 if result.whole or result.saved else 1


@command.command()
@click.argument("source")
@click.argument("target")
@option("--run", "runs", multiple=True, metavar="RUN", help="Copy this run or series only; may be repeated.")
@json_option
def copy(source: str, target: str, runs: tuple[str, ...], as_json: bool) -> int:
    """Copy runs from the store SOURCE to the store TARGET, each a file name or a URL, and verify every row.

    Nothing in SOURCE changes. A run that is in TARGET already is compared and left as it is. If copying is interrupted,
    the same command continues it.
    """
    import msgspec

    opened, destination = Store(source, create=False), Store(target)
    results = []
    for result in copy_runs(opened, destination, find_copied(opened, runs)):
        results.append(result)
        if not as_json:
            details = result.reason or (f"{result.rows} rows" if result.rows else f"sha256 {result.sha256[:12]}")
            click.echo(f"{result.id}  {result.suite}  {result.outcome}: {details}")
    calibrations = 0 if runs else copy_calibrations(opened, destination)
    copied, there, skipped = (
        sum(result.outcome == name for result in results) for name in ("copied", "already there", "skipped")
    )
    if as_json:
        print_json({"runs": msgspec.to_builtins(results), "calibrations": calibrations, "target": destination.path})
    else:
        parts = [f"{counted(copied, 'run')} copied and verified"]
        parts += [counted(calibrations, "calibration")] if calibrations else []
        parts += [f"{there} already there"] if there else []
        parts += [f"{skipped} skipped"] if skipped else []
        click.echo(f"{', '.join(parts)}: {destination.path}")
    return 1 if skipped else 0
