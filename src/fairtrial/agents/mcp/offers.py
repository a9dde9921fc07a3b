"""Resources and prompts of MCP servers, offered to a model as tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from fairtrial.agents.mcp.preflight import all_prompts, all_resources
from fairtrial.providers.conversation import Tool

if TYPE_CHECKING:
    from mcp.client import Client

READ_RESOURCE, GET_PROMPT = "read_resource", "get_prompt"


async def offers_as_tools(server: str, client: Client, resources: bool, prompts: bool) -> AsyncIterator[Tool]:
    """Yield a tool that reads resources and one that gets prompts, where they are wanted and the server has any."""
    capabilities = client.server_capabilities
    if resources and capabilities.resources is not None:
        addresses = [uri async for uri in all_resources(client)]
        if addresses:
            words = "\n".join(["Read one of these resources; parts in braces are to be filled in:", *addresses])
            yield _tool(server, READ_RESOURCE, words, {"uri": {"type": "string"}}, "resource")
    if prompts and capabilities.prompts is not None:
        described = [
            f"{prompt.name} ({', '.join(one.name for one in prompt.arguments or ())}): {prompt.description or ''}"
            async for prompt in all_prompts(client)
        ]
        if described:
            words = "\n".join(["Get one of these prompts, each with its arguments:", *described])
            properties = {"name": {"type": "string"}, "arguments": {"type": "object"}}
            yield _tool(server, GET_PROMPT, words, properties, "prompt")


def _tool(server: str, name: str, description: str, properties: dict[str, Any], kind: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": [next(iter(properties))]}
    return Tool(name=name, server=server, tool=name, description=description, schema=schema, kind=kind)


async def offered(client: Client, tool: Tool, arguments: dict[str, Any]) -> str:
    """Return the text of the resource or prompt that a model asks for."""
    if tool.kind == "resource":
        contents = (await client.read_resource(str(arguments["uri"]))).contents
        return "\n".join(getattr(part, "text", None) or f"[{part.uri}]" for part in contents)
    given = {name: str(value) for name, value in (arguments.get("arguments") or {}).items()}
    messages = (await client.get_prompt(str(arguments["name"]), given)).messages
    return "\n\n".join(f"{one.role}: {getattr(one.content, 'text', f'[{one.content.type}]')}" for one in messages)
