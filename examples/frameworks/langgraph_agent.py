"""An agent of LangChain and LangGraph: `python:langgraph_agent.py:query`."""

from contextlib import AsyncExitStack
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.tools import StructuredTool
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

MODEL = "openai:gpt-6-luna"


async def query(input: str, system: str, mcp_servers: dict[str, Any], steps: list[Any]) -> dict[str, Any]:
    """Answer with the tools of the servers; `steps` keeps the calls even if the time is over before it returns."""
    async with AsyncExitStack() as stack:
        tools = []
        for name, server in mcp_servers.items():
            program = {key: server[key] for key in ("command", "args", "env", "cwd") if key in server}
            client = await stack.enter_async_context(Client(StdioServerParameters(**program)))
            tools += [_tool(name, tool, client, steps) for tool in (await client.list_tools()).tools]
        model = init_chat_model(MODEL, use_responses_api=True)  # chat completions: no tools while it reasons
        agent = create_agent(model, tools, system_prompt=system)
        messages = (await agent.ainvoke({"messages": [("user", input)]}))["messages"]
    counts = [message.usage_metadata for message in messages if getattr(message, "usage_metadata", None)]
    return {
        "text": messages[-1].text,
        "tool_calls": steps,
        "prompt_tokens": sum(count["input_tokens"] for count in counts),
        "completion_tokens": sum(count["output_tokens"] for count in counts),
        "cache_read_tokens": sum(count.get("input_token_details", {}).get("cache_read", 0) for count in counts),
    }


def _tool(server: str, tool: Any, client: Client, steps: list[Any]) -> StructuredTool:
    """Return a tool of a server as one of LangChain."""

    async def call(**arguments: Any) -> str:
        step = {"server": server, "tool": tool.name, "arguments": arguments, "result": None}
        steps.append(step)
        reply = await client.call_tool(tool.name, arguments)
        step["result"] = "\n".join(getattr(block, "text", "") for block in reply.content)
        step["error"] = bool(reply.is_error)
        return step["result"]

    name = f"{server}__{tool.name}"
    return StructuredTool.from_function(
        coroutine=call, name=name, description=tool.description or name, args_schema=tool.input_schema
    )
