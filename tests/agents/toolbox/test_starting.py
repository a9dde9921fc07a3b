"""MCP servers that take their time to start: patience of their own, side by side, and not counted as latency."""

import shlex
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairtrial import pipeline
from fairtrial.agents.mcp.server import ServerError, all_connected
from fairtrial.core.answer import Request
from fairtrial.core.errors import ProblemsError, TargetUnusableError
from fairtrial.core.experiment import McpServer, TargetSpec
from fairtrial.targets import tool_agent
from fairtrial.targets.claude_code import ClaudeCode, ClaudeCodeOptions, _kept
from tests.scripted import Say
from tests.targets.test_agents import CASES, facts

SHELF = str(Path(__file__).parents[2] / "servers" / "shelf.py")


class TestPatience:
    async def test_a_server_has_its_own(self, run_suite):
        silent = {"command": "sleep", "args": ["3600"], "timeout": 0.05}
        with pytest.raises(TargetUnusableError, match=r"did not respond within 0\.05 s \(raise the server's `timeout`"):
            await run_suite(mcp_servers={"facts": silent}, conditions={"c": {"mcp": ["facts"]}}, cases=CASES)

    def test_there_is_time_to_download_it(self, write_suite):
        keys = {"mcp_servers": {"facts": facts()}, "conditions": {"c": {"mcp": ["facts"]}}}
        assert pipeline.load(write_suite(**keys)).arms[0].condition.mcp[0].timeout == 120
        keys["mcp_servers"] = {"facts": facts(timeout=300)}
        assert pipeline.load(write_suite(**keys)).arms[0].condition.mcp[0].timeout == 300
        keys["mcp_servers"] = {"facts": facts(timeout=60_000)}  # as some clients write milliseconds
        with pytest.raises(ProblemsError, match="<= 3600"):
            pipeline.load(write_suite(**keys))

    def test_it_does_not_change_what_is_asked(self):
        one, other = McpServer(name="s", timeout=1, tools=("a",)), McpServer(name="s", timeout=2)
        assert one.identity() == other.identity() and one.as_config() == other.as_config()

    def test_claude_code_has_the_same(self, tmp_path):
        target = ClaudeCode(TargetSpec(id="c", kind="claude_code", provider="c"), ClaudeCodeOptions(), tmp_path)
        servers = (McpServer(name="a", timeout=200), McpServer(name="b", timeout=0.5))
        environment = target._environment(Request(trial_id="", case_id="", input="", mcp=servers), tmp_path)
        assert environment["MCP_TIMEOUT"] == "200000" and "MCP_TIMEOUT" in _kept(environment)["FAIRTRIAL_KEEP"].split(
            ","
        )


def waiting_server(folder: Path, name: str, other: str, **more) -> McpServer:
    """A server that starts only once the other one has begun to."""
    script = (
        f"touch {name}; while [ ! -e {other} ]; do sleep 0.02; done; exec {shlex.join([sys.executable, str(SHELF)])} ."
    )
    return McpServer(name=name, command="sh", args=("-c", script), cwd=str(folder), **more)


class TestSideBySide:
    async def test_servers_start_together(self, tmp_path):
        servers = [waiting_server(tmp_path, "a", "b"), waiting_server(tmp_path, "b", "a")]
        async with all_connected(servers) as clients:
            lists = [await client.list_tools() for client in clients.values()]
        assert list(clients) == ["a", "b"] and [tools.tools[0].name for tools in lists] == ["read", "read"]

    @pytest.mark.slow
    async def test_one_that_fails_ends_the_others(self, tmp_path):
        servers = [
            waiting_server(tmp_path, "a", "never"),
            McpServer(name="b", command="sh", args=("-c", "echo broken >&2; exit 3")),
        ]
        with pytest.raises(ServerError, match=r"`b`.*it wrote: broken"):
            async with all_connected(servers):
                raise AssertionError

    async def test_what_happens_inside_is_not_touched(self, tmp_path):
        with pytest.raises(KeyError, match="mine"):
            async with all_connected([McpServer(name="a", command=sys.executable, args=(SHELF, "."))]):
                raise KeyError("mine")

    async def test_nobody_to_start(self):
        async with all_connected(()) as clients:
            assert clients == {}


async def test_waiting_for_servers_is_no_latency(model, tmp_path, monkeypatch):
    clock = [0.0]
    served = await model(lambda turn: Say("4711"))

    @asynccontextmanager
    async def slow(servers, root):
        clock[0] += 100
        yield {}

    monkeypatch.setattr(tool_agent, "all_connected", slow)
    monkeypatch.setattr("fairtrial.agents.record.time.perf_counter", lambda: clock[0])
    address = f"{served.url}/v1"
    spec = TargetSpec(id="a", kind="tool_agent", provider="openai", model="m", api="openai_api", base_url=address)
    target = tool_agent.ToolAgent(spec, tool_agent.ToolAgentOptions(), tmp_path)
    await target.open(1)
    try:
        answer = await target.ask(Request(trial_id="", case_id="", input="x"))
    finally:
        await target.close()
    assert (answer.text, answer.latency_ms) == ("4711", 0.0)
