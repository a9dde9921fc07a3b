"""`fairtrial delete`."""

from __future__ import annotations

import click

from fairtrial.cli.options import open_store, option, store_option
from fairtrial.store.files import delete_kept_files


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@store_option
def command(runs: tuple[str, ...], yes: bool, store: str | None) -> None:
    """Delete runs with all their answers and scores."""
    opened = open_store(store)
    run_ids = list(dict.fromkeys(opened.find_run(name).id for name in runs))
    if not yes:
        click.confirm(f"Delete {', '.join(run_ids)} for good?", abort=True, err=True)
    for run_id in run_ids:
        with opened.lease(run_id):
            opened.delete_run(run_id)
            delete_kept_files(opened, run_id)
        click.echo(f"deleted: {run_id}", err=True)
