"""Connect to MCP servers; the only module that uses the `mcp` package's client."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fairtrial.agents.processes.supervised import supervised
from fairtrial.core.errors import NotInstalledError
from fairtrial.core.experiment import McpServer
from fairtrial.core.time_limit import time_limit

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.client.session import ListRootsFnT

_MAX_SHOWN = 4000


class ServerError(Exception):
    """A server cannot be used; the message is one sentence."""


@asynccontextmanager
async def connected(server: McpServer, root: Path | None = None) -> AsyncIterator[Client]:
    """Connect to a server; raise ServerError if that fails. Exceptions inside the block are not changed.

    A server with `roots` learns that `root` is the folder that it may work in.
    """
    try:
        from mcp.client import Client
    except ImportError:
        raise NotInstalledError("MCP servers", "agents") from None

    # A server may print anything to stdout by mistake, secrets included: do not log it.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        roots = _roots(root) if root is not None and server.roots else None
        client = Client(_transport(server, errors), list_roots_callback=roots)
        try:
            async with time_limit(server.timeout):
                await client.__aenter__()
        except TimeoutError:
            problem = f"it did not respond within {server.timeout:g} s (raise the server's `timeout` to allow more)"
            raise ServerError(_reason(server, problem, errors)) from None
        except (Exception, asyncio.CancelledError) as error:
            if _cancelled(error):
                raise
            raise ServerError(_reason(server, first_reason(error), errors)) from None
        try:
            yield client
        finally:
            await _disconnect(client)


@asynccontextmanager
async def all_connected(servers: Sequence[McpServer], root: Path | None = None) -> AsyncIterator[dict[str, Client]]:
    """Connect to these servers concurrently and yield their clients by name."""
    done = asyncio.Event()
    ready: dict[str, asyncio.Future[Client]] = {server.name: asyncio.Future() for server in servers}
    tasks = [asyncio.create_task(_keep_connected(server, root, ready[server.name], done)) for server in servers]
    try:
        yield dict(zip(ready, await asyncio.gather(*ready.values()), strict=True))
    except BaseException:
        for task in tasks:
            task.cancel()
        raise
    finally:
        done.set()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _keep_connected(
    server: McpServer, root: Path | None, ready: asyncio.Future[Client], done: asyncio.Event
) -> None:
    """Keep a server connected until `done`, in its own task, because a task that opens a client must also close it."""
    try:
        async with connected(server, root) as client:
            ready.set_result(client)
            await done.wait()
    except Exception as error:
        if ready.done():
            raise
        ready.set_exception(error)


def _roots(folder: Path) -> ListRootsFnT:
    """Return what answers a server that asks for the folders that it may work in."""
    from mcp.types import ListRootsResult, Root

    root = Root.model_validate({"uri": folder.resolve().as_uri(), "name": "workspace"})

    async def list_roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[root])

    return list_roots


async def _disconnect(client: Client) -> None:
    """Disconnect; errors no longer matter."""
    with suppress(Exception):  # the server may have died, or never have worked
        await client.__aexit__(None, None, None)


def _cancelled(error: BaseException) -> bool:
    """Return whether our own task was cancelled, and not only a part of the client."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _transport(server: McpServer, errors: IO[str]) -> Any:
    if server.transport == "stdio":
        from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client

        command, *arguments = supervised(server.command, *server.args)
        environment = {**get_default_environment(), **server.env}
        return stdio_client(
            StdioServerParameters(command=command, args=arguments, env=environment, cwd=server.cwd or None),
            errlog=errors,  # type: ignore[arg-type]  # any file with a descriptor works
        )
    if server.transport == "sse":
        from mcp.client.sse import sse_client

        return sse_client(server.url, headers=dict(server.headers))
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    return streamable_http_client(server.url, http_client=create_mcp_http_client(headers=dict(server.headers)))


def _reason(server: McpServer, problem: str, errors: IO[str]) -> str:
    errors.seek(0)
    # Keep whole lines unchanged: secrets are hidden when they are shown, and part of one could not be recognised.
    output = errors.read().strip()
    if len(output) > _MAX_SHOWN:
        output = output[-_MAX_SHOWN:].partition("\n")[2]
    ending = f"; it wrote: {output}" if output else ""
    return f"the MCP server `{server.name}` ({server.shown()}) cannot be used: {problem}{ending}"


def first_reason(error: BaseException) -> str:
    """Return the first exception in a group (or the exception itself) as one sentence."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
