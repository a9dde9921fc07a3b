"""One MCP server, connected: the seam to the `mcp` package."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

from fairtrial.core.errors import NotInstalledError
from fairtrial.core.experiment import McpServer
from fairtrial.toolbox.supervised import supervised

if TYPE_CHECKING:
    from mcp.client import Client

_SHOWN_ERROR = 4000


class ServerError(Exception):
    """A server that cannot be used, in one sentence."""


@asynccontextmanager
async def connected(server: McpServer) -> AsyncIterator[Client]:
    """A client of this server; ServerError where it cannot be reached. What happens inside the block is not touched."""
    try:
        from mcp.client import Client
    except ImportError:
        raise NotInstalledError("MCP servers", "agents") from None

    # What a server prints where it should not is its own affair, and may hold anything.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        client = Client(_transport(server, errors))
        try:
            async with asyncio.timeout(server.timeout):
                await client.__aenter__()
        except TimeoutError:
            what = f"it said nothing for {server.timeout:g} s (`timeout` of the server gives it more)"
            raise ServerError(_reason(server, what, errors)) from None
        except (Exception, asyncio.CancelledError) as error:
            if _cancelled(error):
                raise
            raise ServerError(_reason(server, sentence(error), errors)) from None
        try:
            yield client
        finally:
            await _leave(client)


@asynccontextmanager
async def all_connected(servers: Sequence[McpServer]) -> AsyncIterator[dict[str, Client]]:
    """Clients of these servers by name, started side by side."""
    done = asyncio.Event()
    ready: dict[str, asyncio.Future[Client]] = {server.name: asyncio.Future() for server in servers}
    holding = [asyncio.create_task(_hold(server, ready[server.name], done)) for server in servers]
    try:
        yield dict(zip(ready, await asyncio.gather(*ready.values()), strict=True))
    except BaseException:
        for task in holding:
            task.cancel()
        raise
    finally:
        done.set()
        await asyncio.gather(*holding, return_exceptions=True)


async def _hold(server: McpServer, ready: asyncio.Future[Client], done: asyncio.Event) -> None:
    """Keep one server until it is no longer needed, in a task of its own: whoever opens a client has to close it."""
    try:
        async with connected(server) as client:
            ready.set_result(client)
            await done.wait()
    except Exception as error:
        if ready.done():
            raise
        ready.set_exception(error)


async def _leave(client: Client) -> None:
    """Say good-bye; whatever a server does then no longer matters."""
    with suppress(Exception):  # it may be dead, or never have been well
        await client.__aexit__(None, None, None)


def _cancelled(error: BaseException) -> bool:
    """Whether somebody wants us to stop, and not only a part of the client itself."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _transport(server: McpServer, errors: IO[str]) -> Any:
    if server.transport == "stdio":
        from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client

        command, *arguments = supervised(server.command, *server.args)
        environment = {**get_default_environment(), **server.env}
        return stdio_client(
            StdioServerParameters(command=command, args=arguments, env=environment, cwd=server.cwd or None),
            errlog=errors,  # type: ignore[arg-type]  # any file with a descriptor will do
        )
    if server.transport == "sse":
        from mcp.client.sse import sse_client

        return sse_client(server.url, headers=dict(server.headers))
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    return streamable_http_client(server.url, http_client=create_mcp_http_client(headers=dict(server.headers)))


def _reason(server: McpServer, what: str, errors: IO[str]) -> str:
    errors.seek(0)
    # Whole lines and as they are: whoever shows them hides values first, and half of one could not be recognised.
    said = errors.read().strip()
    if len(said) > _SHOWN_ERROR:
        said = said[-_SHOWN_ERROR:].partition("\n")[2]
    ending = f"; it wrote: {said}" if said else ""
    return f"the MCP server `{server.name}` ({server.shown()}) cannot be used: {what}{ending}"


def sentence(error: BaseException) -> str:
    """The first reason inside whatever was raised."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
