"""`fairtrial vote`."""

from __future__ import annotations

import getpass
from pathlib import Path
from urllib.parse import urlencode

import click

from fairtrial.analyse.run import Run
from fairtrial.cli.options import in_store
from fairtrial.cli.serve import serve
from fairtrial.cli.start import open_store, run_coroutine
from fairtrial.store.votes import votes
from fairtrial.text.printable import counted
from fairtrial.workflows.vote import Poll


def vote_on_run(run: str, by: str | None, port: int, opens: bool, store: str | None) -> None:
    """Serve the page for votes until it is stopped."""
    stored_run = Run.find(run, open_store(store))
    voter = by or _user()
    click.echo(f"{counted(Poll(stored_run, voter).remaining, 'pair')} to vote on in run {stored_run.id}", err=True)
    path = f"runs/{stored_run.id}/vote?{urlencode({'by': voter})}"
    run_coroutine(serve("127.0.0.1", port, Path(), None, store, opens=opens, path=path))
    remaining = Poll(stored_run, voter).remaining
    left = f"{counted(remaining, 'pair')} left"
    if any(votes(stored_run.store, stored_run.id)):
        left += f"; `{in_store(f'fairtrial rank {stored_run.id} --by votes')}` shows the ranking"
    click.echo(left, err=True)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
