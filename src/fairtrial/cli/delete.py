"""`fairtrial delete`."""

from __future__ import annotations

import click

from fairtrial.cli.start import open_store
from fairtrial.store.files import delete_with_files


def delete_runs(runs: tuple[str, ...], yes: bool, store: str | None) -> None:
    """Delete runs after a confirmation."""
    opened = open_store(store)
    run_ids = list(dict.fromkeys(opened.find_run(name).id for name in runs))
    if not yes:
        click.confirm(f"Delete {', '.join(run_ids)} for good?", abort=True, err=True)
    for run_id in run_ids:
        with opened.lease(run_id):
            delete_with_files(opened, run_id)
        click.echo(f"deleted: {run_id}", err=True)
