"""An agent without a model, which makes the mistakes that agents make. It stands in for yours.

It takes the first tool whose description has a word of the question, guesses the argument, and tries once more after an
error. Told how the house writes, it ends with a greeting.
"""

import re
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

CAPITALS = {"France": "Paris", "Japan": "Tokyo"}


async def query(user_query: str, system_prompt: str, mcp_servers: dict[str, Any]) -> dict[str, Any]:
    """Answer a question, and report which tools were called."""
    ending = " Kind regards, the shop" if "# Skill: house-style" in system_prompt else ""
    country = next((name for name in CAPITALS if name in user_query), None)
    if country and "spell" not in user_query:
        return {"text": CAPITALS[country] + ending, "tool_calls": [], "cost_usd": 0.001}
    for name, server in mcp_servers.items():
        program = StdioServerParameters(
            command=server["command"], args=server["args"], env=server["env"], cwd=server.get("cwd")
        )
        async with Client(program) as client:
            text, calls = await _ask(client, name, user_query)
        return {"text": text + ending, "tool_calls": calls, "cost_usd": 0.003}
    return {"text": "I do not know." + ending, "tool_calls": [], "cost_usd": 0.001}


async def _ask(client: Client, server: str, question: str) -> tuple[str, list[dict[str, Any]]]:
    """Call a tool with the first name in the question; after an error, with the next one."""
    tools = (await client.list_tools()).tools
    words = set(re.findall(r"[a-z]{4,}", question.lower()))
    tool = next((one for one in tools if words & set(re.findall(r"[a-z]{4,}", one.description.lower()))), tools[0])
    (key,) = tool.input_schema["properties"]
    found = re.findall(r"[A-Z]-\d+|\b(?!Which|What|How|Where|Since|Is)[A-Z][a-z]+|lamp|chair|\d+", question) or ["?"]
    calls: list[dict[str, Any]] = []
    text = ""
    for guess in found[:2]:
        value = int(guess) if guess.isdigit() else guess
        reply = await client.call_tool(tool.name, {key: value})
        text = reply.content[0].text
        call = {"server": server, "tool": tool.name, "arguments": {key: value}}
        calls.append({**call, "result": text, "error": bool(reply.is_error)})
        if not reply.is_error:
            break
    return text, calls
