"""An agent of the OpenAI Agents SDK: `python:openai_agents.py:query`."""

from contextlib import AsyncExitStack
from typing import Any

from agents import Agent, OpenAIProvider, RunConfig, Runner
from agents.mcp import MCPServerStdio

MODEL = "gpt-6-luna"


async def query(input: str, system: str, mcp_servers: dict[str, Any]) -> dict[str, Any]:
    """Answer with the tools of the servers."""
    async with AsyncExitStack() as stack:
        servers = []
        for name, server in mcp_servers.items():
            program = {key: server[key] for key in ("command", "args", "env", "cwd") if key in server}
            connecting = MCPServerStdio(program, name=name, client_session_timeout_seconds=120)
            servers.append(await stack.enter_async_context(connecting))
        agent = Agent(name="trial", instructions=system, model=MODEL, mcp_servers=servers)
        # OpenAI's models reason beside tools in Responses only; most other servers speak chat completions (`False`).
        config = RunConfig(model_provider=OpenAIProvider(use_responses=True), tracing_disabled=True)
        result = await Runner.run(agent, input, run_config=config)
    usage = result.context_wrapper.usage
    return {
        "text": result.final_output,
        "tool_calls": _calls(result.to_input_list()),
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cache_read_tokens": usage.input_tokens_details.cached_tokens,
    }


def _calls(items: list[Any]) -> list[dict[str, Any]]:
    """Return the calls of tools with what they returned."""
    outputs = {item["call_id"]: item["output"] for item in items if item.get("type") == "function_call_output"}
    return [
        {"name": item["name"], "arguments": item["arguments"], "result": str(outputs.get(item["call_id"], ""))}
        for item in items
        if item.get("type") == "function_call"
    ]
