"""`fairtrial serve`."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from fairtrial.cli.options import (
    env_addresses_option,
    load_dotenv,
    open_store,
    option,
    store_option,
    tune_garbage_collector,
)

# Seconds. Pages and runs share one interpreter; a short switch interval keeps pages responsive during a run.
_SWITCH_INTERVAL = 0.0005


@click.command()
@option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; by default only this machine can connect.",
)
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8321,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="Folder with the suites.",
)
@option("--token", metavar="T", help="Access token; default: a new one, which is printed.")
@option("--open/--no-open", "opens", default=False, help="Open the page in your browser.")
@env_addresses_option
@store_option
def command(host: str, port: int, folder: Path, token: str | None, opens: bool, store: str | None) -> None:
    """Start the web interface: write suites, run them, watch, compare, judge, vote.

    Every visitor needs the token, also on this machine. The printed address contains a token and logs you in. To use
    your own token, preferably set FAIRTRIAL_TOKEN in the environment or in `.env`; it is not printed. Ctrl-C stops the
    server: active runs are interrupted and saved, and can be resumed.
    """
    from fairtrial.core.errors import FairtrialError
    from fairtrial.web.access import SHORTEST

    load_dotenv(folder)
    token = token or os.environ.get("FAIRTRIAL_TOKEN") or None
    tune_garbage_collector()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    if token is not None and len(token) < SHORTEST:
        raise FairtrialError(f"a token of {len(token)} characters is too easy to guess; use at least {SHORTEST}")
    asyncio.run(serve(host, port, folder, token, store, opens=opens))


async def serve(
    host: str, port: int, folder: Path, token: str | None, store: str | None, *, opens: bool, path: str = ""
) -> None:
    """Run the web server until it is stopped; open `path` first. Without a token, make one and print it."""
    import signal

    from fairtrial.web.access import link, new_token
    from fairtrial.web.serving import serve_site
    from fairtrial.web.state import cookie_key

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # not available on Windows, where Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(number, stopped.set)
    access_token, key = token or new_token(), None if token else cookie_key()
    server = serve_site(open_store(store, create=True), folder, host=host, port=port, token=access_token, key=key)
    async with server as address:
        login_link = link(address, access_token, path)
        click.echo(f"fairtrial is running at {f'{address}{path}' if token else login_link} (Ctrl-C to stop)", err=True)
        with ExitStack() as on_stop:
            if opens:
                await asyncio.to_thread(_open_in_browser, login_link, on_stop)
            await stopped.wait()
        click.echo("saving active runs …", err=True)


def _open_in_browser(link: str, on_stop: ExitStack) -> None:
    """Open a link in the browser; if that fails, the user still has the printed address."""
    import webbrowser

    from fairtrial.web.state import redirect_file

    with suppress(OSError, RuntimeError):
        webbrowser.open(on_stop.enter_context(redirect_file(link)))
