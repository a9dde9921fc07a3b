"""`fairtrial store`."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.options import json_option, option, print_json, store_option


@click.group()
def command() -> None:
    """Maintain the store."""


@command.command()
@option("--save", type=click.Path(path_type=Path), metavar="FILE", help="Copy all readable rows to a new store.")
@store_option
@json_option
def check(save: Path | None, store: str | None, as_json: bool) -> int:
    """Check that every row of the store can be read, and save those that can."""
    import msgspec

    from fairtrial.store.address import sqlite_path
    from fairtrial.store.salvage import check_store

    result = check_store(sqlite_path(store), save)
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
    elif not result.whole:
        click.echo("use --save FILE to copy the readable rows to a new store")
    return 0 if result.whole or result.saved else 1
