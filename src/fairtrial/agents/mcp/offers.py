"""What a server offers, as JSON data: its name, tools, resources and prompts, as a recording keeps it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from fairtrial.core.experiment import McpServer
from fairtrial.core.ids import content_hash
from fairtrial.text.printable import estimated_tokens

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.types import Prompt as McpPrompt
    from mcp.types import Resource, ResourceTemplate
    from mcp.types import Tool as McpTool


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
    stand_in: str = ""  # what answers in its place, in words
    is_mock: bool = False
    drift: tuple[str, ...] = ()  # how the server has changed since it was recorded, where that is known


async def offers_of(client: Client) -> dict[str, Any]:
    """Return what a server offers, in its own order: agents often take the first tool that fits."""
    known, info = client.server_capabilities, client.server_info
    offers: dict[str, Any] = {
        "name": info.name if info else "",
        "version": info.version if info else "",
        "capabilities": _data(known),
        "tools": [_data(tool) async for tool in all_tools(client)] if known.tools is not None else [],
    }
    if client.instructions:
        offers["instructions"] = client.instructions
    if known.resources is not None:
        offers["resources"] = [_data(one) async for one in _resources(client)]
        offers["resourceTemplates"] = [_data(one) async for one in _templates(client)]
    if known.prompts is not None:
        offers["prompts"] = [_data(prompt) async for prompt in all_prompts(client)]
    return offers


def inventory_of(server: McpServer, offers: dict[str, Any], **more: Any) -> Inventory:
    """Return the inventory of a server by what it offers."""
    addresses = [one["uri"] for one in offers.get("resources", ())]
    templates = [one["uriTemplate"] for one in offers.get("resourceTemplates", ())]
    return Inventory(
        server=server.name,
        entry=server.entry,
        name=offers.get("name", ""),
        version=offers.get("version", ""),
        tools=tuple(_infos(offers)),
        resources=tuple(sorted([*addresses, *templates])),
        prompts=tuple(sorted(prompt["name"] for prompt in offers.get("prompts", ()))),
        **more,
    )


def _infos(offers: dict[str, Any]) -> Iterator[ToolInfo]:
    for tool in sorted(offers.get("tools", ()), key=lambda tool: tool["name"]):
        schema = tool.get("inputSchema") or {}
        described = {"name": tool["name"], "description": tool.get("description"), "input_schema": schema}
        tokens = estimated_tokens(msgspec.json.encode(described).decode())
        yield ToolInfo(tool["name"], content_hash(described), tokens, schema, tool.get("description") or "")


def _data(value: Any) -> dict[str, Any]:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)  # type: ignore[no-any-return]


async def all_tools(client: Client) -> AsyncIterator[McpTool]:
    """Yield every tool of a server."""
    async for page in _pages(client.list_tools):
        for tool in page.tools:
            yield tool


async def all_resources(client: Client) -> AsyncIterator[str]:
    """Yield the addresses of every resource of a server, then the templates of addresses."""
    async for resource in _resources(client):
        yield str(resource.uri)
    async for template in _templates(client):
        yield template.uri_template


async def _resources(client: Client) -> AsyncIterator[Resource]:
    async for page in _pages(client.list_resources):
        for resource in page.resources:
            yield resource


async def _templates(client: Client) -> AsyncIterator[ResourceTemplate]:
    async for page in _pages(client.list_resource_templates):
        for template in page.resource_templates:
            yield template


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
