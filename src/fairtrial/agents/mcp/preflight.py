"""Check every MCP server of every condition and list its tools before anything is spent."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from fairtrial.agents.mcp.server import ServerError, connected, first_reason
from fairtrial.agents.mcp.tokens import AccessTokens
from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import Arm, Condition, McpServer
from fairtrial.core.ids import content_hash
from fairtrial.core.time_limit import time_limit
from fairtrial.text.printable import estimated_tokens

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.types import Prompt as McpPrompt
    from mcp.types import Tool as McpTool

_AT_ONCE = 4


class ToolInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as described by its server; the hash shows whether the description has changed."""

    name: str
    schema_sha256: str
    tokens: int = 0  # that its name, description and schema take of every prompt, estimated
    schema: dict[str, Any] = {}  # of its arguments
    description: str = ""


class Inventory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a server offered before the run."""

    server: str
    name: str
    version: str
    tools: tuple[ToolInfo, ...]
    resources: tuple[str, ...] = ()  # their addresses, and templates of such
    prompts: tuple[str, ...] = ()
    entry: str = ""  # which of two servers it is that agents see under one name


async def preflight(arms: Sequence[Arm], hide: Callable[[str], str] = str) -> list[Inventory]:
    """Return the inventory of every server in use; raise an error if any server cannot be used."""
    servers = list({(server.name, server.entry): server for arm in arms for server in arm.condition.mcp}.values())
    if not servers:
        return []
    gate, tokens = asyncio.Semaphore(_AT_ONCE), AccessTokens()

    async def inspect(server: McpServer) -> Inventory | str:
        async with gate:
            try:
                (server,) = await tokens.authorised([server])
            except ServerError as error:
                return str(error)
            with tempfile.TemporaryDirectory(prefix="fairtrial-preflight-") as empty:  # in the place of a workspace
                return await _inspect(server.placed(Path(empty)))

    results = await asyncio.gather(*map(inspect, servers))
    problems = [" ".join(hide(item).split()) for item in results if isinstance(item, str)]
    if problems:
        raise TargetUnusableError("\n".join(problems))
    _check_tools(arms, [item for item in results if isinstance(item, Inventory)])
    return [_hidden(item, hide) for item in results if isinstance(item, Inventory)]


def _hidden(inventory: Inventory, hide: Callable[[str], str]) -> Inventory:
    """Return an inventory as it may be stored: a server may put whatever it knows into a schema."""
    return msgspec.json.decode(hide(msgspec.json.encode(inventory).decode()), type=Inventory)


def _check_tools(arms: Sequence[Arm], inventories: Sequence[Inventory]) -> None:
    """Raise an error if a condition gives or describes a tool that its server does not have."""
    offered = {(item.server, item.entry): {tool.name: tool for tool in item.tools} for item in inventories}
    for server in (server for arm in arms for server in arm.condition.mcp):
        tools = offered[server.name, server.entry]
        for name in (*server.only, *(text.tool for text in server.texts)):
            if name not in tools:
                known = ", ".join(tools)
                raise TargetUnusableError(f"the MCP server `{server.name}` has no tool `{name}`; its tools: {known}")
        for text in server.texts:
            if unknown := text.unknown(tools[text.tool].schema):
                known = ", ".join(tools[text.tool].schema.get("properties") or {}) or "none"
                tool = f"{server.name}.{text.tool}"
                raise TargetUnusableError(f"the tool `{tool}` has no parameter `{unknown[0]}`; its parameters: {known}")


async def _inspect(server: McpServer) -> Inventory | str:
    try:
        async with connected(server) as client, time_limit(server.timeout):
            offers = client.server_capabilities
            tools = [tool async for tool in all_tools(client)] if offers.tools is not None else []
            resources = [uri async for uri in all_resources(client)] if offers.resources is not None else []
            prompts = [prompt.name async for prompt in all_prompts(client)] if offers.prompts is not None else []
            server_info = client.server_info
    except ServerError as error:
        return str(error)
    except Exception as error:
        return f"the MCP server `{server.name}` ({server.shown()}) failed to list its tools: {first_reason(error)}"
    if not (tools or resources or prompts):
        return f"the MCP server `{server.name}` ({server.shown()}) offers no tools"
    name, version = (server_info.name, server_info.version) if server_info else ("", "")
    return Inventory(
        server=server.name,
        name=name,
        version=version,
        tools=tuple(_infos(tools)),
        resources=tuple(sorted(resources)),
        prompts=tuple(sorted(prompts)),
        entry=server.entry,
    )


def with_tools(arms: Iterable[Arm], inventory: Iterable[Inventory]) -> tuple[Arm, ...]:
    """Return these arms with the tool names of their servers, so that a call can be matched to its server."""
    offered = {(item.server, item.entry): tuple(tool.name for tool in item.tools) for item in inventory}

    def with_tool_names(condition: Condition) -> Condition:
        servers = (replace(server, tools=offered.get((server.name, server.entry), ())) for server in condition.mcp)
        return replace(condition, mcp=tuple(servers))

    return tuple(replace(arm, condition=with_tool_names(arm.condition)) for arm in arms)


def _infos(tools: Iterable[McpTool]) -> Iterable[ToolInfo]:
    for tool in sorted(tools, key=lambda tool: tool.name):
        described = tool.model_dump(mode="json", include={"name", "description", "input_schema"})
        tokens = estimated_tokens(msgspec.json.encode(described).decode())
        description = described["description"] or ""
        yield ToolInfo(described["name"], content_hash(described), tokens, described["input_schema"], description)


async def all_tools(client: Client) -> AsyncIterator[McpTool]:
    """Yield every tool of a server."""
    async for page in _pages(client.list_tools):
        for tool in page.tools:
            yield tool


async def all_resources(client: Client) -> AsyncIterator[str]:
    """Yield the addresses of every resource of a server, then the templates of addresses."""
    async for page in _pages(client.list_resources):
        for resource in page.resources:
            yield str(resource.uri)
    async for page in _pages(client.list_resource_templates):
        for template in page.resource_templates:
            yield template.uri_template


async def all_prompts(client: Client) -> AsyncIterator[McpPrompt]:
    """Yield every prompt of a server."""
    async for page in _pages(client.list_prompts):
        for prompt in page.prompts:
            yield prompt


async def _pages(read: Callable[..., Awaitable[Any]]) -> AsyncIterator[Any]:
    cursor = None
    while True:
        page = await read(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if not cursor:
            return
