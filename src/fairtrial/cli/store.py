"""`fairtrial store`."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.options import json_option, option, print_json, store_option


@click.group()
def command() -> None:
    """Look after the store."""


@command.command()
@option("--save", type=click.Path(path_type=Path), metavar="FILE", help="Copy what is whole into a new store there.")
@store_option
@json_option
def check(save: Path | None, store: str | None, as_json: bool) -> int:
    """See whether every row of the store can be read, and save those that can."""
    import msgspec

    from fairtrial.store.address import sqlite_path
    from fairtrial.store.salvage import check_store

    found = check_store(sqlite_path(store), save)
    if as_json:
        print_json({**msgspec.to_builtins(found), "whole": found.whole})
        return 0 if found.whole else 1
    rows = sum(table.rows for table in found.tables)
    if found.whole:
        click.echo(f"{found.path} is whole: {rows} rows in {len(found.tables)} tables")
    else:
        click.echo(f"{found.path} is damaged; {rows} rows can be read")
        for problem in found.problems[:5]:
            click.echo(f"  {problem}")
        for table in found.tables:
            if table.lost:
                click.echo(f"  {table.table}: {table.rows} rows can be read, {table.lost} cannot")
    if found.saved:
        click.echo(f"saved: {found.saved}")
    elif not found.whole:
        click.echo("--save FILE copies what is whole into a new store")
    return 0 if found.whole or found.saved else 1
