"""`fairtrial serve`."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from fairtrial.cli.asking import load_dotenv
from fairtrial.cli.interrupts import installed
from fairtrial.cli.start import open_store, run_coroutine, tune_garbage_collector

# Seconds. Pages and runs share one interpreter; a short switch interval keeps pages responsive during a run.
_SWITCH_INTERVAL = 0.0005


def serve_pages(host: str, port: int, folder: Path, token: str | None, opens: bool, store: str | None) -> None:
    """Serve the web interface until it is stopped."""
    from fairtrial.core.errors import FairtrialError
    from fairtrial.web.access import SHORTEST

    load_dotenv(folder)
    token = token or os.environ.get("FAIRTRIAL_TOKEN") or None
    tune_garbage_collector()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    if token is not None and len(token) < SHORTEST:
        raise FairtrialError(f"a token of {len(token)} characters is too easy to guess; use at least {SHORTEST}")
    run_coroutine(serve(host, port, folder, token, store, opens=opens))


async def serve(
    host: str, port: int, folder: Path, token: str | None, store: str | None, *, opens: bool, path: str = ""
) -> None:
    """Run the web server until it is stopped; open `path` first. Without a token, make one and print it."""
    from fairtrial.web.access import link, new_token
    from fairtrial.web.serving import serve_site
    from fairtrial.web.state import cookie_key

    stopped = asyncio.Event()
    access_token, key = token or new_token(), None if token else cookie_key()
    server = serve_site(open_store(store, create=True), folder, host=host, port=port, token=access_token, key=key)
    async with server as address:
        login_link = link(address, access_token, path)
        with installed().stopping_by(stopped.set), ExitStack() as on_stop:
            shown = f"{address}{path}" if token else login_link
            click.echo(f"fairtrial is running at {shown} (Ctrl-C to stop)", err=True)
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
