"""`fairtrial serve`."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from fairtrial.cli.options import keep_collector_calm, load_dotenv, open_store, option, store_option

# Pages and runs share one interpreter, and whoever waits for a turn waits so many seconds at most.
_TURN = 0.0005


@click.command()
@option("--host", default="127.0.0.1", show_default=True, help="Where to listen; this machine alone unless given.")
@option("--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="0 takes a free one.")
@option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", help="Whose suites.")
@option("--token", metavar="T", help="Who has it may enter; else one is made and printed.")
@option("--open/--no-open", "opens", default=False, help="Open it in your browser.")
@store_option
def command(host: str, port: int, folder: Path, token: str | None, opens: bool, store: str | None) -> None:
    """Serve the web page: write suites, run them, watch, compare, judge, vote.

    Everybody needs the token, on this machine too. The address that is printed has one in it and lets you in; a token
    of your own is better given as FAIRTRIAL_TOKEN, also in `.env`, and is not printed. Ctrl-C ends it: runs that go on
    are interrupted, saved, and can be resumed.
    """
    from fairtrial.core.errors import FairtrialError, NotInstalledError

    try:
        import nh3  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise NotInstalledError("the web page", "web") from None
    from fairtrial.web.access import SHORTEST

    load_dotenv(folder)
    token = token or os.environ.get("FAIRTRIAL_TOKEN") or None
    keep_collector_calm()
    sys.setswitchinterval(_TURN)
    if token is not None and len(token) < SHORTEST:
        raise FairtrialError(f"a token of {len(token)} characters is guessed soon: give {SHORTEST} at least")
    asyncio.run(serve(host, port, folder, token, store, opens=opens))


async def serve(
    host: str, port: int, folder: Path, token: str | None, store: str | None, *, opens: bool, path: str = ""
) -> None:
    """Serve the page until somebody ends it; `path` is what is shown first. Without a token one is made and shown."""
    import signal

    from fairtrial.web.access import link, new_token
    from fairtrial.web.serving import opened
    from fairtrial.web.state import cookie_key

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows has no such handlers; Ctrl-C raises there
            loop.add_signal_handler(number, ended.set)
    made, key = token or new_token(), None if token else cookie_key()
    place = opened(open_store(store, create=True), folder, host=host, port=port, token=made, key=key)
    async with place as address:
        direct = link(address, made, path)
        click.echo(f"fairtrial is at {f'{address}{path}' if token else direct} (Ctrl-C ends)", err=True)
        with ExitStack() as until_end:
            if opens:
                await asyncio.to_thread(_open, direct, until_end)
            await ended.wait()
        click.echo("saving what is at work …", err=True)


def _open(link: str, until_end: ExitStack) -> None:
    """Show a link in the browser; where that cannot be done, the printed address is left."""
    import webbrowser

    from fairtrial.web.state import redirect_file

    with suppress(OSError, RuntimeError):
        webbrowser.open(until_end.enter_context(redirect_file(link)))
