"""An agent of pydantic-ai: `python:pydantic_agent.py:query`."""

from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ToolCallPart, ToolReturnPart

MODEL = "openai-responses:gpt-6-luna"


async def query(input: str, system: str, mcp_servers: dict[str, Any]) -> dict[str, Any]:
    """Answer with the tools of the servers."""
    toolsets = []
    for name, server in mcp_servers.items():
        program = StdioTransport(server["command"], server["args"], env=server["env"], cwd=server.get("cwd"))
        toolsets.append(MCPToolset(program, id=name, init_timeout=120, read_timeout=600))
    agent = Agent(MODEL, instructions=system, toolsets=toolsets)
    async with agent:
        result = await agent.run(input)
    parts = [part for message in result.all_messages() for part in message.parts]
    returned = {part.tool_call_id: str(part.content) for part in parts if isinstance(part, ToolReturnPart)}
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    return {
        "text": result.output,
        "tool_calls": [
            {"name": call.tool_name, "args": call.args_as_dict(), "result": returned.get(call.tool_call_id)}
            for call in calls
        ],
        "prompt_tokens": result.usage.input_tokens,
        "completion_tokens": result.usage.output_tokens,
        "cache_read_tokens": result.usage.cache_read_tokens,
    }
