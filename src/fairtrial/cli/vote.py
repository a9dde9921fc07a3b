"""`fairtrial vote`."""

from __future__ import annotations

import asyncio
import getpass
from pathlib import Path

import click

from fairtrial.cli.options import open_store, option, store_option


@click.command()
@click.argument("run", default="latest")
@option("--by", metavar="NAME", help="Who votes; your user name unless given.")
@option("--port", type=click.IntRange(0, 65535), default=0, help="Where the page is served; else a free port.")
@option("--open/--no-open", "opens", default=True, help="Open it in your browser.")
@store_option
def command(run: str, by: str | None, port: int, opens: bool, store: str | None) -> None:
    """Choose between the answers of RUN, two at a time, on random sides, without knowing whose they are.

    Pages are shown sealed, other answers as text. Every vote is stored at once; `fairtrial rank RUN --by votes` shows
    the board, `--by both` counts judges' verdicts as well. Ctrl-C ends it. `fairtrial serve` has the same page.
    """
    from urllib.parse import urlencode

    from fairtrial.analyse import Run
    from fairtrial.cli.serve import serve
    from fairtrial.core.errors import NotInstalledError
    from fairtrial.workflows.vote import Poll

    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise NotInstalledError("voting", "web") from None
    found = Run.find(run, open_store(store))
    voter = by or _user()
    click.echo(f"{Poll(found, voter).remaining} pairs to vote on in run {found.id}", err=True)
    path = f"runs/{found.id}/vote?{urlencode({'by': voter})}"
    asyncio.run(serve("127.0.0.1", port, Path(), None, store, opens=opens, path=path))
    left = Poll(found, voter).remaining
    click.echo(f"{left} pairs are left; `fairtrial rank {found.id} --by votes` shows the board", err=True)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
