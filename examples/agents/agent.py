"""An agent without a model: it asks the first server that it is given, and says what it was told.

It stands in for yours. `query` is the shape that `python:agent.py:query` calls; run as a program it is what `command`
starts: the question on stdin, the servers in the file that FAIRTRIAL_MCP_CONFIG names, a report as JSON on stdout.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters


async def query(user_query: str, system_prompt: str, mcp_servers: dict[str, Any]) -> dict[str, Any]:
    """Answer a question, and tell which tools were called and what it cost."""
    for server in mcp_servers.values():
        program = StdioServerParameters(
            command=server["command"], args=server["args"], env=server["env"], cwd=server.get("cwd")
        )
        async with Client(program) as client:
            said = await client.call_tool("search", {"text": user_query})
        text = said.content[0].text
        calls = [{"name": "search", "args": {"text": user_query}, "result": text}]
        return {"text": text, "tool_calls": calls, "cost_usd": 0.0}
    return {"text": "I do not know.", "tool_calls": [], "cost_usd": 0.0}


if __name__ == "__main__":
    config = os.environ.get("FAIRTRIAL_MCP_CONFIG")
    servers = json.loads(Path(config).read_text())["mcpServers"] if config else {}
    report = asyncio.run(query(sys.stdin.read(), os.environ["FAIRTRIAL_SYSTEM_PROMPT"], servers))
    sys.stdout.write(json.dumps(report))
