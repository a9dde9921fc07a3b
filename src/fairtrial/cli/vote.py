"""`fairtrial vote`."""

from __future__ import annotations

import asyncio
import getpass

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
    the board, `--by both` counts judges' verdicts as well. Ctrl-C ends it.
    """
    from fairtrial.analyse import Run
    from fairtrial.core.errors import NotInstalledError
    from fairtrial.voting import Poll

    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise NotInstalledError("voting", "web") from None
    found = Run.find(run, open_store(store))
    poll = Poll(found, by or _user())
    click.echo(f"{poll.remaining} pairs to vote on in run {found.id}", err=True)
    try:
        asyncio.run(_serve(found, poll, port, opens=opens))
    except KeyboardInterrupt:  # that is how it ends
        click.echo(f"{poll.remaining} pairs are left; `fairtrial rank {found.id} --by votes` shows the board", err=True)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


async def _serve(run: object, poll: object, port: int, *, opens: bool) -> None:
    import webbrowser

    from fairtrial.web.guard import Guard
    from fairtrial.web.preview import Previews
    from fairtrial.web.serving import bound, names_of, served
    from fairtrial.web.vote import Booth

    main, other = bound(port), bound()
    previews = Previews()
    booth = Booth(run, poll, previews, f"http://{names_of(other)[0]}")  # type: ignore[arg-type]  # imported when used
    apps = (Guard(booth.app, names_of(main)), main), (Guard(previews.app, names_of(other)), other)
    address = f"http://{names_of(main)[0]}/"
    async with served(*apps):
        click.echo(f"vote at {address} (Ctrl-C ends)", err=True)
        if opens:
            await asyncio.to_thread(webbrowser.open, address)
        await asyncio.Event().wait()
