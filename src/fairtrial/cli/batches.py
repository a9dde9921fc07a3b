"""`fairtrial batches`."""

from __future__ import annotations

from datetime import UTC, datetime
from shlex import quote
from typing import Any

import click

from fairtrial.cli.asking import load_dotenv_of
from fairtrial.cli.documents import print_json
from fairtrial.cli.options import in_store
from fairtrial.cli.start import open_store, run_coroutine
from fairtrial.workflows.batches import BatchOfRun, look_at_batches


def show_batches(run: str, cancel: bool, store: str | None, as_json: bool) -> None:
    """Print the batches of a run, and cancel them if asked to."""
    opened = open_store(store)
    load_dotenv_of(run, opened)
    batches = run_coroutine(look_at_batches(run, store=opened, cancel=cancel))
    if as_json:
        print_json({"run_id": opened.find_run(run).id, "batches": [_document(batch) for batch in batches]})
        return
    for batch in batches:
        began = datetime.fromtimestamp(batch.batch.created_at).strftime("%Y-%m-%d %H:%M")
        click.echo(f"{batch.batch.number}  {batch.batch.target}  {batch.batch.requests:,} requests  {began}")
        click.echo(f"   {batch.batch.id or 'no id yet'}: {batch.state}")
    if not batches:
        click.echo("this run has no batches: set `batch: true` on a target or judge of its suite", err=True)
    elif any(batch.unstored for batch in batches):
        click.echo(f"{in_store(f'fairtrial resume {quote(run)}')}  collects the results", err=True)


def _document(of_run: BatchOfRun) -> dict[str, Any]:
    batch = of_run.batch
    return {
        "number": batch.number,
        "target": batch.target,
        "id": batch.id,
        "requests": batch.requests,
        "submitted_at": datetime.fromtimestamp(batch.created_at, UTC).isoformat(),
        "unstored": of_run.unstored,
        "state": of_run.state,
    }
