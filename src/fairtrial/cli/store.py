"""`fairtrial store`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from fairtrial.cli.documents import print_json
from fairtrial.store import Store
from fairtrial.store.checking import MOST_NAMED, StoreCheck, check_store
from fairtrial.store.copying import copy_calibrations, copy_runs, find_copied
from fairtrial.text.printable import counted

_MOST_PROBLEMS, _MOST_NAMED = 5, 10


def check_rows(save: Path | None, store: str | None, as_json: bool) -> int:
    """Print which rows of the store are whole, and save them if asked to."""
    result = check_store(store, save)
    if as_json:
        print_json({**msgspec.to_builtins(result), "whole": result.whole})
        return 0 if result.whole else 1
    rows = sum(table.rows for table in result.tables)
    unproven = sum(table.unproven for table in result.tables)
    earlier = f" ({counted(unproven, 'row')} of an earlier version without a hash)" if unproven else ""
    if result.whole:
        click.echo(f"{result.path} is intact: {rows} rows in {len(result.tables)} tables{earlier}")
    else:
        click.echo(f"{result.path} is damaged; {rows} rows are whole{earlier}")
        _print_damage(result)
    if result.saved:
        click.echo(f"saved: {result.saved}")
    elif not result.whole and "://" not in result.path:
        click.echo("use --save FILE to copy the rows that are whole to a new store")
    return 0 if result.whole or result.saved else 1


def _print_damage(result: StoreCheck) -> None:
    for problem in result.problems[:_MOST_PROBLEMS]:
        click.echo(f"  {problem}")
    for table in result.tables:
        if table.lost or table.damaged:
            lost = f", {table.lost} cannot be read" if table.lost else ""
            damaged = f", {table.damaged} {'is' if table.damaged == 1 else 'are'} damaged" if table.damaged else ""
            click.echo(f"  {table.table}: {table.rows} rows are whole{damaged}{lost}")
    for named in result.damaged[:_MOST_NAMED]:
        click.echo(f"    {named}")
    more = sum(table.damaged for table in result.tables) - len(result.damaged[:_MOST_NAMED])
    if more > 0:
        click.echo(f"    and {more} more; --json names up to {MOST_NAMED}")


def copy_to(source: str, target: str, runs: tuple[str, ...], as_json: bool) -> int:
    """Copy runs from one store to another, and print what became of each."""
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
