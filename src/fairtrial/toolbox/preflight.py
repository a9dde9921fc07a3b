"""Check every MCP server of every condition and list its tools before anything is spent."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import Arm, Condition, McpServer
from fairtrial.core.ids import content_hash
from fairtrial.core.time_limit import time_limit
from fairtrial.toolbox.server import ServerError, connected, first_reason

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.types import Tool as McpTool

_AT_ONCE = 4


class ToolInfo(msgspec.Struct, frozen=True):
    """A tool as described by its server; the hash shows whether the description has changed."""

    name: str
    schema_sha256: str


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """The tools that a server offered before the run."""

    server: str
    name: str
    version: str
    tools: tuple[ToolInfo, ...]


async def preflight(arms: Sequence[Arm], hide: Callable[[str], str] = str) -> list[Inventory]:
    """Return the inventory of every server in use; raise an error if any server cannot be used."""
    servers = list({server.name: server for arm in arms for server in arm.condition.mcp}.values())
    if not servers:
        return []
    gate = asyncio.Semaphore(_AT_ONCE)

    async def inspect(server: McpServer) -> Inventory | str:
        async with gate:
            return await _inspect(server)

    results = await asyncio.gather(*map(inspect, servers))
    problems = [" ".join(hide(item).split()) for item in results if isinstance(item, str)]
    if problems:
        raise TargetUnusableError("\n".join(problems))
    return [item for item in results if isinstance(item, Inventory)]


async def _inspect(server: McpServer) -> Inventory | str:
    with tempfile.TemporaryDirectory(prefix="fairtrial-preflight-") as empty:  # in the place of a workspace
        return await _inspect_in(server.placed(Path(empty)))


async def _inspect_in(server: McpServer) -> Inventory | str:
    try:
        async with connected(server) as client, time_limit(server.timeout):
            tools = [tool async for tool in all_tools(client)]
            server_info = client.server_info
    except ServerError as error:
        return str(error)
    except Exception as error:
        return f"the MCP server `{server.name}` ({server.shown()}) failed to list its tools: {first_reason(error)}"
    if not tools:
        return f"the MCP server `{server.name}` ({server.shown()}) offers no tools"
    name, version = (server_info.name, server_info.version) if server_info else ("", "")
    return Inventory(server=server.name, name=name, version=version, tools=tuple(_infos(tools)))


def with_tools(arms: Iterable[Arm], inventory: Iterable[Inventory]) -> tuple[Arm, ...]:
    """Return these arms with the tool names of their servers, so that a call can be matched to its server."""
    offered = {item.server: tuple(tool.name for tool in item.tools) for item in inventory}

    def with_tool_names(condition: Condition) -> Condition:
        servers = (replace(server, tools=offered.get(server.name, ())) for server in condition.mcp)
        return replace(condition, mcp=tuple(servers))

    return tuple(replace(arm, condition=with_tool_names(arm.condition)) for arm in arms)


def _infos(tools: Iterable[McpTool]) -> Iterable[ToolInfo]:
    for tool in sorted(tools, key=lambda tool: tool.name):
        described = tool.model_dump(mode="json", include={"name", "description", "input_schema"})
        yield ToolInfo(described["name"], content_hash(described))


async def all_tools(client: Client) -> AsyncIterator[McpTool]:
    """Yield every tool of a server, page by page."""
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            yield tool
        cursor = page.next_cursor
        if not cursor:
            return
