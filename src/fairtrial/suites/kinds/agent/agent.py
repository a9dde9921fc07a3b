"""An agent without a model: it calls the first tool of the first server that it is given. Replace it by yours."""

from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters


async def query(user_query: str, system_prompt: str, mcp_servers: dict[str, Any]) -> dict[str, Any]:
    """Answer a question; report the answer, the tool calls and the cost."""
    for server in mcp_servers.values():
        program = StdioServerParameters(
            command=server["command"], args=server["args"], env=server["env"], cwd=server.get("cwd")
        )
        async with Client(program) as client:
            result = await client.call_tool("search", {"text": user_query})
        text = "\n".join(part.text for part in result.content if part.type == "text")
        calls = [{"name": "search", "args": {"text": user_query}, "result": text}]
        return {"text": text, "tool_calls": calls, "cost_usd": 0.0}
    return {"text": "I do not know.", "tool_calls": [], "cost_usd": 0.0}
