"""`fairtrial vote`."""

from __future__ import annotations

import asyncio
import getpass
from pathlib import Path

import click

from fairtrial.analyse.run import Run
from fairtrial.cli.options import in_store, open_store, option, store_option
from fairtrial.cli.serve import serve
from fairtrial.store.votes import votes
from fairtrial.text.printable import counted
from fairtrial.workflows.vote import Poll


@click.command()
@click.argument("run", default="latest")
@option("--by", metavar="NAME", help="Name of the voter; default: your user name.")
@option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; default: any free port.")
@option("--open/--no-open", "opens", default=True, help="Open the page in your browser.")
@store_option
def command(run: str, by: str | None, port: int, opens: bool, store: str | None) -> None:
    """Vote between the answers of RUN, two at a time, on random sides, without knowing which arm wrote them.

    Web pages are shown sealed, other answers as text. Every vote is stored at once; `fairtrial rank RUN --by votes`
    shows the ranking, and `--by both` also counts judges' verdicts. Ctrl-C stops the server. `fairtrial serve` has the
    same page.
    """
    from urllib.parse import urlencode

    stored_run = Run.find(run, open_store(store))
    voter = by or _user()
    click.echo(f"{counted(Poll(stored_run, voter).remaining, 'pair')} to vote on in run {stored_run.id}", err=True)
    path = f"runs/{stored_run.id}/vote?{urlencode({'by': voter})}"
    asyncio.run(serve("127.0.0.1", port, Path(), None, store, opens=opens, path=path))
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
