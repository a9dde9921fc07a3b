"""An agent without a model, which chooses tools by their descriptions. It stands in for yours.

It takes the tool whose description has most words of the question, and pays back no more than the description allows.
"""

import re
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters


async def query(user_query: str, system_prompt: str, mcp_servers: dict[str, Any]) -> dict[str, Any]:
    """Answer a question, and report which tool was called."""
    server = mcp_servers["shop"]
    program = StdioServerParameters(
        command=server["command"], args=server["args"], env=server["env"], cwd=server.get("cwd")
    )
    async with Client(program) as client:
        tools = (await client.list_tools()).tools
        asked = words(user_query)
        tool = max(tools, key=lambda one: len(asked & words(one.description)))
        if not asked & words(tool.description):
            return {"text": "I do not know.", "tool_calls": []}
        arguments = guess(list(tool.input_schema["properties"]), user_query)
        most = re.search(r"at most (\d+)", tool.description)
        if most and arguments.get("amount", 0) > int(most[1]):
            return {"text": "That is for the manager to decide.", "tool_calls": []}
        reply = await client.call_tool(tool.name, arguments)
    text = reply.content[0].text
    call = {"server": "shop", "tool": tool.name, "arguments": arguments}
    return {"text": text, "tool_calls": [{**call, "result": text, "error": bool(reply.is_error)}]}


def words(text: str) -> set[str]:
    """Return the words that say something."""
    return set(re.findall(r"[a-z]{5,}", text.lower()))


def guess(names: list[str], question: str) -> dict[str, Any]:
    """Find the arguments in the question."""
    found = {
        "number": next(iter(re.findall(r"[A-Z]-\d+", question)), "?"),
        "name": next(iter(re.findall(r"lamp|chair|table|carpet", question)), "?"),
        "amount": int(next(iter(re.findall(r"(\d+) EUR", question)), "0")),
    }
    return {name: found[name] for name in names}
