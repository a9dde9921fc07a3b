"""`fairtrial serve`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import click

from fairtrial.cli.options import keep_collector_calm, load_dotenv, open_store, option, store_option

# Pages and runs share one interpreter, and whoever waits for a turn waits so many seconds at most.
_TURN = 0.0005


@click.command()
@option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; others than this machine need a token."
)
@option("--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="0 takes a free one.")
@option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", help="Whose suites.")
@option("--token", metavar="T", help="Who has it may enter; else one is made where one is needed.")
@option("--open/--no-open", "opens", default=False, help="Open it in your browser.")
@store_option
def command(host: str, port: int, folder: Path, token: str | None, opens: bool, store: str | None) -> None:
    """Serve the web page: write suites, run them, watch, compare, judge, vote.

    It is for this machine alone unless --host says otherwise; then everybody needs the token, which can also be given
    as FAIRTRIAL_TOKEN. Ctrl-C ends it: runs that go on are interrupted, saved, and can be resumed.
    """
    from fairtrial.core.errors import FairtrialError, NotInstalledError

    try:
        import nh3  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise NotInstalledError("the web page", "web") from None
    from fairtrial.web.access import SHORTEST, new_token
    from fairtrial.web.serving import LOOPBACK

    load_dotenv()
    keep_collector_calm()
    sys.setswitchinterval(_TURN)
    if token is not None and len(token) < SHORTEST:
        raise FairtrialError(f"a token of {len(token)} characters is guessed soon: give {SHORTEST} at least")
    made = "" if host in LOOPBACK or token else new_token()
    asyncio.run(serve(host, port, folder, token or made, store, opens=opens, shows=bool(made)))


async def serve(
    host: str,
    port: int,
    folder: Path,
    token: str,
    store: str | None,
    *,
    opens: bool,
    shows: bool = False,
    path: str = "",
) -> None:
    """Serve the page until somebody ends it; `path` is what is shown first."""
    import signal
    import webbrowser

    from fairtrial.web.serving import opened

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows has no such handlers; Ctrl-C raises there
            loop.add_signal_handler(number, ended.set)
    async with opened(open_store(store, create=True), folder, host=host, port=port, token=token) as address:
        # Behind # a token stands in no log, and is not sent along with the address.
        shown = f"{address}enter#{token}" if shows else f"{address}{path}"
        click.echo(f"fairtrial is at {shown} (Ctrl-C ends)", err=True)
        if opens:
            await asyncio.to_thread(webbrowser.open, shown)
        await ended.wait()
        click.echo("saving what is at work …", err=True)
