"""Before anything is spent: every server of every condition is started or reached, and its tools are listed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import Arm, Condition, McpServer
from fairtrial.core.ids import content_hash
from fairtrial.toolbox.server import ServerError, connected, sentence

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.types import Tool as McpTool

_AT_ONCE = 4


class ToolInfo(msgspec.Struct, frozen=True):
    """A tool as its server describes it; the hash tells whether that has changed."""

    name: str
    schema_sha256: str


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """What a server offered before the run."""

    server: str
    name: str
    version: str
    tools: tuple[ToolInfo, ...]


async def preflight(arms: Sequence[Arm], hide: Callable[[str], str] = str) -> list[Inventory]:
    """The inventory of every server in use; a server that cannot be used stops everything."""
    servers = list({server.name: server for arm in arms for server in arm.condition.mcp}.values())
    if not servers:
        return []
    gate = asyncio.Semaphore(_AT_ONCE)

    async def look(server: McpServer) -> Inventory | str:
        async with gate:
            return await _look(server)

    found = await asyncio.gather(*map(look, servers))
    problems = [" ".join(hide(item).split()) for item in found if isinstance(item, str)]
    if problems:
        raise TargetUnusableError("\n".join(problems))
    return [item for item in found if isinstance(item, Inventory)]


async def _look(server: McpServer) -> Inventory | str:
    try:
        async with connected(server) as client, asyncio.timeout(server.timeout):
            tools = [tool async for tool in all_tools(client)]
            about = client.server_info
    except ServerError as error:
        return str(error)
    except Exception as error:
        return f"the MCP server `{server.name}` ({server.shown()}) does not list its tools: {sentence(error)}"
    if not tools:
        return f"the MCP server `{server.name}` ({server.shown()}) offers no tools"
    name, version = (about.name, about.version) if about else ("", "")
    return Inventory(server=server.name, name=name, version=version, tools=tuple(_infos(tools)))


def with_tools(arms: Iterable[Arm], inventory: Iterable[Inventory]) -> tuple[Arm, ...]:
    """These arms, whose servers have the names of their tools: so a call can be told whose it was."""
    offered = {item.server: tuple(tool.name for tool in item.tools) for item in inventory}

    def equip(condition: Condition) -> Condition:
        servers = (replace(server, tools=offered.get(server.name, ())) for server in condition.mcp)
        return replace(condition, mcp=tuple(servers))

    return tuple(replace(arm, condition=equip(arm.condition)) for arm in arms)


def _infos(tools: Iterable[McpTool]) -> Iterable[ToolInfo]:
    for tool in sorted(tools, key=lambda tool: tool.name):
        described = tool.model_dump(mode="json", include={"name", "description", "input_schema"})
        yield ToolInfo(described["name"], content_hash(described))


async def all_tools(client: Client) -> AsyncIterator[McpTool]:
    """Every tool of a server, page by page."""
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            yield tool
        cursor = page.next_cursor
        if not cursor:
            return
