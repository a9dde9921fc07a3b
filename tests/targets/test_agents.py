"""Agents under conditions: real MCP servers, the real Claude Code CLI, scripted models."""

import asyncio
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run
from fairtrial.config import RunOptions
from fairtrial.config.advice import warnings
from fairtrial.core.errors import ProblemsError, TargetUnusableError
from fairtrial.core.experiment import Condition, McpServer, ToolUse
from fairtrial.core.trace import tool_use
from fairtrial.engine import ladder
from fairtrial.store.ledger import charged
from fairtrial.workflows.resume import aresume
from tests import forks
from tests.limits import limit_reached_when
from tests.ports import free_port
from tests.processes import ended, new_mark
from tests.scripted import Say, Turn, look_up

FACTS = str(Path(__file__).parents[1] / "servers" / "facts.py")
OFFICIAL = str(Path(__file__).parents[1] / "servers" / "official.py")  # made with the protocol's own library
TOOLS = ("add", "get.item", "get_item", "look_around", "lookup", "paper")
CASES = [{"id": "code", "input": "What is the code?", "expected": "4711"}]


def facts(behave: str = "", **more) -> dict:
    return {"command": sys.executable, "args": [FACTS], "env": {"BEHAVE": behave}, **more}


def official(program: str = OFFICIAL) -> dict:
    """A server made with the protocol's own library, which takes more than a second to import: in a fork that has it."""
    return {"command": str(forks.programs() / "python"), "args": [program]}


def hanging(mark: str, hangs: Path) -> dict:
    """A server whose tool never answers; it has this mark, and makes this file when it is asked."""
    return {"command": sys.executable, "args": [FACTS, mark], "env": {"BEHAVE": "hang", "HANGS": str(hangs)}}


def conditions(**gates) -> dict:
    return {
        "baseline": {"system": "Answer from your own knowledge."},
        "with-facts": {"system": "Use the facts.", "mcp": ["facts"], **gates},
    }


class TestGates:
    def test_only_calls_to_given_servers_count(self):
        calls = [{"server": "facts", "tool": "add"}, {"server": "facts", "tool": "add", "error": True}]
        trace = {"tool_calls": [*calls, {"server": None, "tool": "Bash"}, {"server": "other", "tool": "x"}, "nonsense"]}
        assert tool_use(trace, ["facts"]) == ToolUse(tools={"facts.add": (2, 1)})
        assert tool_use(None, ["facts"]) is None and tool_use({"text": 1}, ["facts"]) is None

    @pytest.mark.parametrize(
        ("calls", "errors", "use", "success", "missing"),
        [
            (0, 0, True, False, "no tool was used"),
            (2, 2, True, False, ""),
            (2, 2, False, True, "no tool call succeeded"),
            (2, 1, True, True, ""),
            (0, 0, False, False, ""),
        ],
    )
    def test_what_is_missing(self, calls, errors, use, success, missing):
        condition = Condition(require_tool_use=use, require_tool_success=success)
        assert condition.missing(ToolUse(tools={"s.t": (calls, errors)} if calls else {})) == missing

    @pytest.mark.slow
    async def test_marked_is_not_failed_and_never_asked_again(self, run_suite):
        target = {
            "id": "t",
            "target": "mock:x",
            "options": {"answer": "4711", "tool_calls": [{"server": "facts", "tool": "lookup", "share": 0.5}]},
        }
        cases = [{"id": f"c{n}", "input": f"case {n}", "expected": "4711"} for n in range(20)]
        keys = {"targets": [target], "mcp_servers": {"facts": facts()}, "cases": cases}
        run = await run_suite(**keys, conditions=conditions(require_tool_use=True))
        baseline, with_facts = run.arms
        assert baseline.tools is None and with_facts.scored == 20
        used = with_facts.tools.used
        assert 0 < used < 20 and with_facts.tools.marked == 20 - used
        assert with_facts.tools.when_used.count == used and with_facts.tools.tools == {"facts.lookup": (used, 0)}
        marked = [trial.missing for trial in run.trials() if trial.condition == "with-facts"]
        assert marked.count("no tool was used") == 20 - used
        strict = await run_suite(**keys, conditions=conditions(require_tool_use=True, on_missing_tool_use="fail"))
        assert (strict.arms[1].scored, strict.arms[1].unscored) == (used, 20 - used)
        assert strict.status == "incomplete"
        tried = await aresume(strict.id, store=strict.store, mode="retry")
        assert (tried.arms[1].scored, tried.arms[1].tools.answers) == (used, 20)


class TestConfiguration:
    def test_the_shape_of_desktop_clients(self, write_suite):
        path = write_suite(
            mcpServers={
                "facts": {"command": sys.executable, "args": [FACTS], "autoApprove": ["lookup"], "disabled": False},
                "web": {"type": "streamable-http", "url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "a"}},
                "old": {"type": "sse", "url": "http://127.0.0.1:1/sse"},
            },
            conditions={"c": {"system": "s", "mcp": ["facts", "web", "old"]}},
        )
        servers = pipeline.load(path).arms[0].condition.mcp
        assert [server.transport for server in servers] == ["stdio", "http", "sse"]

    @pytest.mark.parametrize(
        ("keys", "reason"),
        [
            ({"conditions": {"c": {"mcp": ["fact"]}}}, "unknown MCP server `fact`; did you mean `facts`"),
            ({"conditions": {"c": {"require_tool_use": True}}}, "has no MCP server"),
            ({"mcp_servers": {"facts": {}}}, "needs either `command`"),
            ({"mcp_servers": {"facts": {"command": "no-such-program"}}}, "no program `no-such-program`"),
            ({"mcp_servers": {"facts": {"url": "http://x", "disabled": True}}}, "is disabled"),
            ({"targets": ["ollama:m"]}, "`tool-agent:ollama:m` can"),
            ({"targets": ["tool-agent"]}, "needs a model"),
            ({"targets": ["tool-agent:mock:echo"]}, "behind an API"),
            ({"targets": ["claude-code"]}, "ANTHROPIC_API_KEY"),
        ],
    )
    def test_bad_input(self, write_suite, keys, reason):
        keys = {"mcp_servers": {"facts": facts()}, "conditions": {"c": {"mcp": ["facts"]}}, **keys}
        with pytest.raises(ProblemsError, match=reason):
            pipeline.load(write_suite(**keys))

    def test_keys_do_not_change_what_is_asked(self):
        with_key = McpServer(name="s", transport="http", url="http://x", headers={"Authorization": "one"})
        other = McpServer(name="s", transport="http", url="http://x", headers={"Authorization": "two"})
        assert Condition(mcp=(with_key,)).identity() == Condition(mcp=(other,)).identity()
        # What was asked before there were MCP servers keeps its identity.
        assert Condition(name="n", system="s").identity() == {"name": "n", "system": "s"}


class TestPreflight:
    @pytest.mark.slow
    @pytest.mark.parametrize("program", [FACTS, OFFICIAL])
    async def test_the_inventory_is_stored(self, run_suite, program):
        run = await run_suite(mcp_servers={"facts": official(program)}, conditions=conditions(), cases=CASES)
        (server,) = run.context["mcp_servers"]
        assert (server["server"], server["name"], server["version"]) == ("facts", "facts", "1.2.3")
        assert [tool["name"] for tool in server["tools"]] == [
            "add",
            "get.item",
            "get_item",
            "look_around",
            "lookup",
            "paper",
        ]
        assert len(server["tools"][0]["schema_sha256"]) == 64

    @pytest.mark.slow
    async def test_a_server_that_does_not_start_stops_everything(self, run_suite, store, monkeypatch):
        monkeypatch.setenv("SECRET_SHELF", "shelf")
        server = facts(args=[FACTS, "${SECRET_SHELF}"])
        server["env"]["BEHAVE"] = "no start"
        with pytest.raises(TargetUnusableError, match=r"`facts` \(.*facts.py .*it wrote: cannot find the") as raised:
            await run_suite(mcp_servers={"facts": server}, conditions=conditions(), cases=CASES)
        assert "the shelf" not in str(raised.value) and "${SECRET_SHELF}" in str(raised.value)
        assert store.runs() == []

    async def test_nobody_at_the_address(self, run_suite):
        server = {"url": "http://127.0.0.1:9/mcp"}
        with pytest.raises(TargetUnusableError, match=r"`facts` \(http://127.0.0.1:9/mcp\) cannot be used"):
            await run_suite(mcp_servers={"facts": server}, conditions=conditions(), cases=CASES)


@pytest.mark.slow
class TestToolAgent:
    @pytest.mark.parametrize("provider", ["openai", "anthropic"])
    async def test_it_uses_the_tools_of_its_condition(self, run_suite, model, provider):
        served = await model()
        run = await run_suite(
            targets=[f"tool-agent:{provider}:m"],
            scorer="boolean",
            mcp_servers={"facts": facts() if provider == "openai" else official()},
            conditions=conditions(require_tool_use=True),
            cases=CASES,
            prices={"m": {"input": 1.0, "output": 2.0}},
        )
        baseline, with_facts = run.arms
        assert (baseline.aggregate.mean, with_facts.aggregate.mean) == (0.0, 1.0)
        assert with_facts.tools.tools == {"facts.lookup": (1, 0)} and with_facts.tools.marked == 0
        trial = next(trial for trial in run.trials() if trial.condition == "with-facts")
        (call,) = trial.trace["tool_calls"]
        assert call["arguments"] == {"topic": "code"} and "4711" in call["result"] and call["duration_ms"] > 0
        assert (trial.trace["turns"], trial.trace["servers"]) == (2, {"facts": "connected"})
        assert trial.prompt_tokens == (200 if provider == "openai" else 280) and trial.cache_read_tokens == 80
        assert trial.cost_usd == pytest.approx((trial.prompt_tokens * 1.0 + 14 * 2.0) / 1e6)
        assert [body.get("tools") is None for body in served.bodies].count(True) == 1

    @pytest.mark.parametrize("name", ["openai:gpt-5-mini", "openai:gpt-4o", "anthropic:m"])
    async def test_a_model_gets_the_parameters_it_would_get_alone(self, run_suite, model, name):
        served = await model(lambda turn: Say("4711"))
        await run_suite(targets=[name, f"tool-agent:{name}"], cases=CASES, stream=False)
        alone, agent = ({k: v for k, v in body.items() if k != "messages"} for body in served.bodies)
        assert alone == agent and ("temperature" in agent) == (name != "openai:gpt-5-mini")

    async def test_parallel_calls_and_unknown_tools(self, run_suite, model):
        def script(turn):
            if not turn.results:
                return Say("", (("facts__add", {"a": 1, "b": 2}), ("facts__add", {"a": 3, "b": 4}), ("nope", {})))
            return Say(" ".join(turn.results))

        await model(script)
        run = await run_suite(
            targets=["tool-agent:openai:m"], mcp_servers={"facts": facts()}, conditions=conditions(), cases=CASES
        )
        trial = next(trial for trial in run.trials() if trial.condition == "with-facts")
        assert "3" in trial.answer and "7" in trial.answer and "there is no tool `nope`" in trial.answer
        assert (trial.tool_calls, trial.tool_errors) == (2, 0)

    @pytest.mark.parametrize(
        ("behave", "said"),
        [
            ("error", "Error executing tool lookup"),
            ("die", "the tool failed"),
            ("hang", "no answer within 1 s"),
            ("flood", "xxx"),
        ],
    )
    async def test_servers_that_misbehave(self, run_suite, model, behave, said):
        await model()
        run = await run_suite(
            targets=[{"target": "tool-agent:openai:m", "options": {"tool_timeout": 1 if behave == "hang" else 250}}],
            mcp_servers={"facts": facts(behave)},
            conditions={"with-facts": {"mcp": ["facts"], "require_tool_success": True}},
            cases=CASES,
        )
        (arm,) = run.arms
        assert arm.scored == 1  # the run ends, and the answer carries what the tool said
        (trial,) = run.trials()
        assert said in trial.trace["tool_calls"][0]["result"]
        assert trial.tool_errors == (0 if behave == "flood" else 1)
        assert trial.missing == ("" if behave == "flood" else "no tool call succeeded")
        assert len(json.dumps(trial.trace)) < 300_000

    async def test_it_stops_somewhere(self, run_suite, model):
        await model(lambda turn: Say("", (("facts__add", {"a": 1, "b": 1}),)))
        keys = {
            "targets": [{"target": "tool-agent:anthropic:m", "options": {"max_steps": 3}}],
            "mcp_servers": {"facts": facts()},
            "conditions": {"with-facts": {"mcp": ["facts"]}},
            "cases": CASES,
        }
        (trial,) = (await run_suite(**keys)).trials()
        assert (trial.limit, trial.limit_value, trial.score, trial.completion_tokens) == ("turns", 3, 0.0, 21)
        (trial,) = (await run_suite(**keys, on_limit="fail")).trials()
        assert trial.failure_kind == "steps"
        assert trial.failure_message == "no answer: stopped at its turn limit after 3 turns"
        assert trial.completion_tokens == 21

    async def test_tools_with_names_alike_and_results_of_all_kinds(self, run_suite, model):
        names = ("facts__get_item", "facts__get_item_2", "facts__paper", "facts__look_around")
        await model(lambda t: Say(" | ".join(t.results)) if t.results else Say("", tuple((name, {}) for name in names)))
        run = await run_suite(
            targets=["tool-agent:openai:m"],
            mcp_servers={"facts": facts()},
            conditions={"with-facts": {"mcp": ["facts"]}},
            cases=CASES,
        )
        (trial,) = run.trials()
        called = {call["tool"]: call["result"] for call in trial.trace["tool_calls"]}
        assert called["get.item"] == "dotted" and called["get_item"] == "plain"
        assert called["paper"] == "the memo says 4711\n[memo://2]"
        assert "ANTHROPIC_API_KEY" not in called["look_around"] and "FAIRTRIAL" not in called["look_around"]

    async def test_a_budget_holds_for_many_calls(self, run_suite, store, model):
        await model(lambda turn: Say("", (("facts__add", {"a": 1, "b": 1}),)))
        run = await run_suite(
            targets=["tool-agent:openai:m"],
            mcp_servers={"facts": facts()},
            conditions={"with-facts": {"mcp": ["facts"]}},
            params={"max_tokens": 7},
            prices={"m": {"input": 1000.0, "output": 1000.0}},
            budget_usd=6.0,  # a call may use as many tokens as it has bytes, and those around them
            cases=[{"id": f"c{n}", "input": f"case {n}", "expected": "x"} for n in range(5)],
        )
        assert 0 < charged(store, run.id) <= 6.0 and run.status == "incomplete"
        failed = [trial for trial in run.trials() if trial.failure_kind == "steps"]
        assert failed and failed[0].trace["tool_calls"] and "reserved for this trial" in failed[0].failure_message

    async def test_a_third_party_server(self, run_suite, model):
        def script(turn):
            if not turn.results:
                return Say("", (("time__convert_time", {**zones, "time": "16:30"}),))
            return Say(turn.results[-1])

        zones = {"source_timezone": "Asia/Tokyo", "target_timezone": "Asia/Kolkata"}
        await model(script)
        run = await run_suite(
            targets=["tool-agent:openai:m"],
            mcp_servers={"time": {"command": str(Path(sys.executable).with_name("mcp-server-time"))}},
            conditions={"with-time": {"mcp": ["time"], "require_tool_success": True}},
            scorer={"type": "regex", "pattern": "13:00"},
            cases=CASES,
        )
        assert run.arms[0].aggregate.mean == 1.0 and run.arms[0].tools.marked == 0
        assert run.context["mcp_servers"][0]["name"] == "mcp-time"

    async def test_another_third_party_server(self, run_suite, model, tmp_path):
        repository = tmp_path / "repository"
        subprocess.run(["git", "init", "-q", "-b", "trunk", str(repository)], check=True)
        (repository / "new.txt").write_text("hello")
        call = (("git__git_status", {"repo_path": str(repository)}),)
        await model(lambda turn: Say(turn.results[-1]) if turn.results else Say("", call))
        run = await run_suite(
            targets=["tool-agent:anthropic:m"],
            mcp_servers={"git": official(str(Path(sys.executable).with_name("mcp-server-git")))},
            conditions={"with-git": {"mcp": ["git"]}},
            scorer={"type": "regex", "pattern": "new.txt"},
            cases=CASES,
        )
        assert run.arms[0].aggregate.mean == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "path"), [("http", "/mcp"), ("sse", "/sse")])
async def test_servers_over_http(run_suite, store, model, monkeypatch, transport, path):
    """Reached with a header that holds a secret, which stays one."""
    await model()
    monkeypatch.setenv("SHELF_KEY", "open sesame")
    port = free_port()
    process = subprocess.Popen([forks.programs() / "python", OFFICIAL, transport, str(port)])
    try:
        await _listening(port)
        server = {"type": transport, "url": f"http://127.0.0.1:{port}{path}", "headers": {"X-Key": "${SHELF_KEY}"}}
        keys = {
            "targets": ["tool-agent:openai:m"],
            "scorer": "boolean",
            "conditions": {"with-facts": {"mcp": ["facts"]}},
            "cases": CASES,
        }
        run = await run_suite(mcp_servers={"facts": server}, **keys)
        assert run.arms[0].aggregate.mean == 1.0 and run.arms[0].tools.used == 1
        with sqlite3.connect(store.address) as connection:
            assert "open sesame" not in "\n".join(connection.iterdump())
        with pytest.raises(TargetUnusableError, match="cannot be used"):
            await run_suite(mcp_servers={"facts": {**server, "headers": {}}}, **keys)
    finally:
        process.kill()
        process.wait()


async def _listening(port: int) -> None:
    for _ in range(2500):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise AssertionError("nobody listens")


@pytest.mark.slow
class TestClaudeCode:
    """The real CLI from the SDK's wheel, pointed at a scripted Messages API."""

    async def test_with_and_without_tools(self, run_suite, model):
        served = await model()
        run = await run_suite(
            targets=[{"id": "claude", "target": "claude-code:claude-test-1"}],
            scorer="boolean",
            mcp_servers={"facts": official()},
            conditions=conditions(require_tool_use=True, require_tool_success=True),
            cases=CASES,
            concurrency=2,
        )
        assert run.status == "completed", [trial.failure_message for trial in run.trials()]
        baseline, with_facts = run.arms
        assert (baseline.aggregate.mean, with_facts.aggregate.mean) == (0.0, 1.0)
        assert (with_facts.tools.used, with_facts.tools.marked) == (1, 0)
        assert baseline.tools is None
        without, trial = run.trials()
        (call,) = trial.trace["tool_calls"]
        assert (call["server"], call["tool"], call["arguments"]) == ("facts", "lookup", {"topic": "code"})
        assert "4711" in call["result"] and not call.get("error") and call["duration_ms"] > 0
        assert trial.trace["servers"] == {"facts": "connected"} and trial.trace["turns"] == 2
        assert trial.trace["session_id"] and trial.model == "claude-test-1"
        assert (trial.prompt_tokens, trial.completion_tokens, trial.cache_read_tokens) == (280, 14, 80)
        assert trial.cost_usd is None  # nobody knows what this model costs: an invented price is none
        assert without.trace["tool_calls"] == [] and without.trace["servers"] == {}
        offered = {tool["name"] for body in served.bodies for tool in body.get("tools") or ()}
        assert not offered & {"Bash", "Read", "Write", "Edit", "WebFetch"}
        told = json.dumps([body["system"] for body in served.bodies])
        assert "Use the facts." in told and "Answer from your own knowledge." in told

    @pytest.mark.parametrize("env", [{}, ["DISABLE_PROMPT_CACHING"], {"DISABLE_PROMPT_CACHING": "1"}])
    async def test_variables_are_passed_when_the_suite_says_so(self, run_suite, model, monkeypatch, env):
        """What leads to the model always is; everything is recorded by its name, and no value of it."""
        monkeypatch.setenv("DISABLE_PROMPT_CACHING", "1")
        monkeypatch.setenv("CLAUDE_CODE_SKIP_VERTEX_AUTH", "0")
        monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-shelf: open-sesame-1234")
        served = await model(lambda turn: Say("It is 4711"))
        target = {"id": "claude", "target": "claude-code:claude-test-1", "options": {"env": env}}
        run = await run_suite(targets=[target], conditions={"plain": {"system": "Answer."}}, cases=CASES)
        assert run.status == "completed", [trial.failure_message for trial in run.trials()]
        assert served.bodies and ("cache_control" not in json.dumps(served.bodies)) == bool(env)
        (entry,) = run.context["arms"]
        assert {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_SKIP_VERTEX_AUTH"} <= {*entry["variables"]}
        assert ("DISABLE_PROMPT_CACHING" in entry["variables"]) == bool(env)
        assert "open-sesame" not in json.dumps([run.context, run.settings]) + run.store.plan(run.plan.id).arms.decode()

    async def test_a_conversation_is_one_session_and_goes_on_where_it_failed(
        self, run_suite, model, monkeypatch, tmp_path
    ):
        monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
        down = [True]

        def script(turn):
            if "Which word?" in turn.question and down[0]:
                raise ValueError("the server is down")
            return Say("It is violet.")

        served = await model(script)
        case = {"id": "talk", "turns": ["My word is violet.", "And two more.", "Which word?"], "expected": "x"}
        run = await run_suite(targets=["claude-code:claude-test-1"], cases=[case], retry={"attempts": 1})
        (trial,) = run.trials()
        assert trial.failure_message.startswith("turn 3: ")
        down[0] = False
        asked = len(served.bodies)
        run = await aresume(run.id, store=run.store, mode="retry")
        (trial,) = run.trials()
        assert trial.answer == "It is violet." and trial.failure_message is None and trial.trace["session_id"]
        again = [json.dumps(body["messages"]) for body in served.bodies[asked:]]
        assert all("Which word?" in text and "My word is violet." in text for text in again)
        last = served.bodies[-1]["messages"]
        said = json.dumps([message["content"] for message in last if message["role"] == "user"])
        assert "My word is violet." in said and "And two more." in said and "Which word?" in said
        assert [message["role"] for message in last].count("assistant") == 2
        folders = [path for path in (tmp_path / "cache" / "sessions").iterdir() if path.is_dir()]
        assert len(folders) == 1 and not folders[0].stat().st_mode & 0o077

    async def test_a_session_that_is_gone_is_said(self, model, monkeypatch, tmp_path):
        from fairtrial.core.answer import Request
        from fairtrial.core.experiment import TargetSpec
        from fairtrial.engine.targets import build_target

        monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
        spec = TargetSpec(id="c", kind="claude_code", provider="claude-code", model="claude-test-1")
        asked = Request(trial_id="t/1", case_id="c", input="Which word?", session="../gone")
        failure = await build_target(spec, tmp_path).ask(asked)
        assert failure.kind == "session" and "not on this machine any more" in failure.message

    async def test_a_server_that_does_not_connect_fails_the_trial(self, run_suite, model, monkeypatch, tmp_path):
        """It was there at preflight, and is gone when the agent needs it."""
        await model()
        switch = tmp_path / "switch"
        script = tmp_path / "server.sh"
        script.write_text(
            f"#!/bin/sh\n[ -e {switch} ] && exit 7\ntouch {switch}\nexec {shlex.join([sys.executable, str(FACTS)])}\n"
        )
        script.chmod(0o755)
        run = await run_suite(
            targets=["claude-code:claude-test-1"],
            mcp_servers={"facts": {"command": str(script)}},
            conditions={"with-facts": {"mcp": ["facts"]}},
            cases=CASES,
            retry={"attempts": 1},
        )
        (trial,) = run.trials()
        assert trial.failure_kind == "mcp" and "`facts` did not connect (failed)" in trial.failure_message

    async def test_text_is_text_and_secrets_stay_off_the_command_line(self, run_suite, model, monkeypatch, tmp_path):
        (tmp_path / "golden.txt").write_text("the golden answer")
        monkeypatch.setenv("SHELF_KEY", "open-sesame-1234")
        seen = []

        def script(turn: Turn) -> Say:
            seen.append(subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout)
            return Say("4711")

        served = await model(script)
        server = facts()
        server["env"]["SHELF"] = "${SHELF_KEY}"
        run = await run_suite(
            targets=["claude-code:claude-test-1"],
            mcp_servers={"facts": server},
            conditions={"with-facts": {"system": "The key is ${SHELF_KEY}. " + "long " * 40_000, "mcp": ["facts"]}},
            cases=[{"input": f"/cost of what @{tmp_path}/golden.txt says?", "expected": "4711"}],
        )
        assert run.arms[0].aggregate.mean == 1.0, [trial.failure_message for trial in run.trials()]
        assert "the golden answer" not in json.dumps(served.bodies) and "open-sesame-1234" not in "".join(seen)
        assert "open-sesame-1234" in json.dumps(served.bodies[0]["system"])

    @pytest.mark.slow
    @pytest.mark.parametrize(("status", "kind"), [(401, "auth"), (429, "rate_limited"), (500, "server")])
    async def test_errors_of_the_api_keep_their_names(self, run_suite, store, model, status, kind):
        broken_status = type("Broken", (web.HTTPException,), {"status_code": status})

        def script(_: Turn) -> Say:
            raise broken_status(text=json.dumps({"type": "error", "error": {"type": "api_error", "message": "no"}}))

        await model(script)
        keys = {"targets": ["claude-code:claude-test-1"], "cases": CASES, "retry": {"attempts": 1}}
        if kind == "auth":
            with pytest.raises(TargetUnusableError, match="key was rejected"):
                await run_suite(**keys)
            return
        run = await run_suite(**keys)
        (trial,) = run.trials()
        assert trial.failure_kind == kind, trial.failure_message

    @pytest.mark.slow
    @pytest.mark.parametrize("on_limit", ["check", "fail"])
    async def test_a_hanging_server_beside_the_suite(self, run_suite, model, tmp_path, monkeypatch, on_limit):
        """Relative arguments mean the suite's folder; it meets the time limit, and not even a wrapper leaves anybody."""
        await model()
        mark, hangs = new_mark(), tmp_path / "hangs"
        monkeypatch.setattr(ladder, "time_limit", limit_reached_when(hangs.exists))
        (tmp_path / "wrap.sh").write_text(f"#!/bin/sh\n{shlex.quote(sys.executable)} server.py {mark}\n")
        (tmp_path / "wrap.sh").chmod(0o755)
        (tmp_path / "server.py").write_text(Path(FACTS).read_text())
        run = await run_suite(
            targets=["claude-code:claude-test-1"],
            mcp_servers={"facts": {"command": "./wrap.sh", "env": {"BEHAVE": "hang", "HANGS": str(hangs)}}},
            conditions={"with-facts": {"mcp": ["facts"]}},
            cases=CASES,
            on_limit=on_limit,
        )
        (trial,) = run.trials()
        kind = "timeout" if on_limit == "fail" else None
        assert trial.failure_kind == kind, trial.failure_message
        assert trial.limit == ("time" if kind is None else None)
        assert [call["unfinished"] for call in trial.trace["tool_calls"]] == [True]
        await _gone(mark)

    @pytest.mark.slow
    async def test_an_endless_agent_is_stopped(self, run_suite, model):
        await model(lambda turn: Say("", (("mcp__facts__add", {"a": 1, "b": 1}),)))
        run = await run_suite(
            targets=[{"target": "claude-code:claude-test-1", "options": {"max_turns": 2}}],
            mcp_servers={"facts": facts()},
            conditions={"with-facts": {"mcp": ["facts"]}},
            cases=CASES,
        )
        (trial,) = run.trials()
        assert (trial.limit, trial.limit_value, trial.score) == ("turns", 2, 0.0), trial.failure_message
        assert trial.trace["tool_calls"] and trial.cost_usd is None and trial.completion_tokens


async def _gone(mark: str) -> None:
    """Wait until no process has this mark on its command line."""
    assert await asyncio.to_thread(ended, mark)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
async def test_kill_minus_nine_leaves_no_process_behind(write_suite, model, tmp_path):
    """The server hangs in a call while its parent is killed without a word; agents by name: contracts/test_agents.py."""
    await model()
    mark, hangs = new_mark(), tmp_path / "hangs"
    suite = write_suite(
        targets=["tool-agent:openai:m"],
        mcp_servers={"facts": hanging(mark, hangs)},
        conditions={"with-facts": {"mcp": ["facts"]}},
        cases=CASES,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "fairtrial", "run", str(suite), "-q"], cwd=tmp_path, env=os.environ.copy()
    )
    while not hangs.exists():
        assert process.poll() is None
        await asyncio.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    await _gone(mark)


class TestOwnAgents:
    @pytest.mark.slow
    async def test_who_tells_nothing_of_tools(self, run_suite, capsys):
        keys = {"targets": [{"target": "command", "options": {"command": ["echo", "4711"]}}]}
        keys |= {"mcp_servers": {"facts": facts()}, "cases": CASES}
        run = await run_suite(**keys, conditions=conditions(require_tool_use=True))
        tools = run.arms[1].tools
        assert (tools.answers, tools.unknown, tools.marked, run.arms[1].scored) == (0, 1, 1, 1)
        strict = await run_suite(**keys, conditions=conditions(require_tool_use=True, on_missing_tool_use="fail"))
        (_, trial) = strict.trials()
        assert trial.unscored_message == "the target does not report which tools were used" == trial.missing

    async def test_a_trace_of_another_shape_can_be_shown(self, run_suite, tmp_path, capsys):
        (tmp_path / "odd.py").write_text(
            "def query(*_):\n    return {'text': 'x', 'tool_calls': ['lookup', {'tool': 't', 'duration_ms': 'long'}]}\n"
        )
        run = await run_suite(targets=["python:odd:query"], cases=CASES)
        trial = next(run.trials())
        assert _run(["show", "--trial", trial.trial_id, "--store", run.store.address]) == 0
        assert "lookup" in capsys.readouterr().out

    @pytest.mark.slow
    async def test_a_function_gets_the_servers(self, run_suite, tmp_path):
        (tmp_path / "mine.py").write_text(
            "def query(user_query, system_prompt, mcp_servers):\n"
            "    calls = [{'server': name, 'tool': 'lookup'} for name in mcp_servers]\n"
            "    kinds = [server['type'] for server in mcp_servers.values()]\n"
            "    return {'text': f'{system_prompt} {kinds}', 'tool_calls': calls}\n"
        )
        run = await run_suite(
            targets=["python:mine:query"],
            mcp_servers={"facts": facts()},
            conditions=conditions(require_tool_use=True),
            cases=CASES,
        )
        baseline, with_facts = run.trials()
        assert baseline.answer == "Answer from your own knowledge. []" and baseline.tool_calls == 0
        assert with_facts.answer == "Use the facts. ['stdio']" and with_facts.tool_calls == 1

    @pytest.mark.slow
    async def test_a_command_gets_a_file(self, run_suite, tmp_path):
        (tmp_path / "agent.py").write_text(
            "import json, os, sys\n"
            "path = os.environ.get('FAIRTRIAL_MCP_CONFIG')\n"
            "servers = json.load(open(path))['mcpServers'] if path else {}\n"
            "calls = [{'server': name, 'tool': 'lookup'} for name in servers]\n"
            "print(json.dumps({'text': path or 'none', 'trace': {'tool_calls': calls}}))\n"
        )
        options = {"command": [sys.executable, "agent.py"], "output": "json"}
        run = await run_suite(
            targets=[{"target": "command", "options": options}],
            mcp_servers={"facts": facts()},
            conditions=conditions(),
            cases=CASES,
        )
        baseline, with_facts = run.trials()
        assert baseline.answer == "none" and with_facts.tool_calls == 1
        assert not Path(with_facts.answer).exists()  # it may hold keys


@pytest.mark.slow
def test_what_people_see(write_suite, capsys):
    target = {
        "id": "t",
        "target": "mock:x",
        "options": {"answer": "4711", "tool_calls": [{"server": "facts", "tool": "lookup", "share": 0.5}]},
    }
    # So many that several use it and several do not, whatever the paths are that have a part in what is drawn.
    cases = [{"id": f"c{n}", "input": f"case {n}", "expected": "4711"} for n in range(40)]
    path = write_suite(
        targets=[target],
        mcp_servers={"facts": facts()},
        conditions=conditions(require_tool_use=True),
        cases=cases,
    )
    assert _run(["run", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "tools used in " in shown and "facts.lookup" in shown and "lack the tool use" in shown
    assert _run(["show", "--json"]) == 0
    arms = json.loads(capsys.readouterr().out)["arms"]
    assert arms[0]["tools"] is None and arms[1]["tools"]["answers"] == 40
    run = Run.find()
    trial = next(trial for trial in run.trials() if trial.tool_calls)
    assert _run(["show", "--trial", trial.trial_id]) == 0
    assert "facts.lookup()" in capsys.readouterr().out


K_EVAL = """
name: "my-eval"
version: "1"
dataset: {path: "./questions.jsonl", question_key: "question", answer_key: "answer"}
agent: {type: "claude_code_sdk", model: "claude-test-1"}
judge: {model: "anthropic/claude-judge-1", temperature: 0.0}
mcp_servers:
  graph: {type: "stdio", command: "PYTHON", args: ["FACTS"], env: {KEY: "${GRAPH_KEY:-none}"}}
conditions:
  baseline:
    mcp_servers: []
    system_prompt: |
      Answer using your own knowledge.
  with_graph:
    mcp_servers: [graph]
    system_prompt: |
      Use the graph tool to answer the question.
    require_mcp_tool_use: true
execution:
  num_repetitions: 2
  max_concurrent: 2
  retry: {max_attempts: 3, initial_backoff_seconds: 1, backoff_multiplier: 2}
"""


@pytest.fixture
def k_eval(tmp_path):
    """A configuration laid out like the one in k-eval's documentation."""
    (tmp_path / "questions.jsonl").write_text('{"question": "What is the code?", "answer": "4711"}\n')
    path = tmp_path / "config.yaml"
    path.write_text(K_EVAL.replace("PYTHON", sys.executable).replace("FACTS", FACTS))
    return path


class TestKEval:
    def test_it_means_what_it_meant(self, k_eval, monkeypatch):
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-key-0001")
        suite = pipeline.load(k_eval)
        assert [arm.name for arm in suite.arms] == ["agent/baseline", "agent/with_graph"]
        assert [arm.repeats for arm in suite.arms] == [2, 2] and suite.settings.concurrency == 2
        assert suite.settings.retry.attempts == 3 and suite.settings.retry.wait == 1
        assert suite.arms[1].condition.require_tool_use and suite.arms[1].scorer == {
            "type": "golden_judge",
            "rubric": "k-eval",
        }
        assert suite.settings.judges[0].params == {"temperature": 0.0}
        assert any("kept and marked" in note for note in warnings(suite))
        assert "DISABLE_PROMPT_CACHING" in suite.arms[0].target.options["env"]
        shorter = k_eval.read_text().split("execution:")[0]
        k_eval.write_text(shorter)
        suite = pipeline.load(k_eval)
        assert suite.arms[0].repeats == 3 and suite.settings.concurrency == 5

    def test_it_can_be_imported(self, k_eval, monkeypatch, capsys):
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-key-0001")
        k_eval.write_text(k_eval.read_text() + "colour: blue\n")
        assert _run(["import", "k-eval", str(k_eval), "-o", "suite.yaml"]) == 0
        shown = capsys.readouterr().err
        assert "not converted: key `colour`" in shown and "works differently: answers without" in shown
        assert _run(["validate", "suite.yaml"]) == 0

    def test_what_is_no_configuration_of_theirs(self, tmp_path, capsys):
        path = tmp_path / "config.yaml"
        path.write_text("name: x\nagent: {}\n")
        assert _run(["import", "k-eval", str(path), "-o", "suite.yaml"]) == 1
        assert "it has no `dataset`" in capsys.readouterr().err
        for old, new, reason in (
            ("conditions:", "conditions: []\nold:", "`conditions` must be a mapping"),
            ("anthropic/claude-judge-1", "gemini-pro", "unknown provider of the judge `gemini-pro`"),
        ):
            path.write_text(K_EVAL.replace(old, new))
            assert _run(["run", str(path)]) == 1
            assert reason in capsys.readouterr().err
        path.write_text(K_EVAL.replace("claude_code_sdk", "robot"))
        assert _run(["run", str(path)]) == 1
        assert "agent type `robot`" in capsys.readouterr().err

    @pytest.mark.slow
    async def test_it_runs_unchanged(self, k_eval, model, store, tmp_path, monkeypatch):
        """Once per condition; the answers are then judged by another model, at another vendor."""
        told_by_tool = [True]

        def script(turn: Turn) -> Say:
            if "golden answer" in turn.system.lower():  # the judge
                right = "4711" in turn.question.split("<<ANSWER TO JUDGE", 1)[1]
                marks = dict.fromkeys(
                    ("factual_adherence", "completeness", "helpfulness_and_clarity"), 5 if right else 1
                )
                verdict = {name: {"reasoning": "so", "score": mark} for name, mark in marks.items()}
                verdict = {**verdict, "unverified_claims": []}
                return Say("", (("reply", verdict),)) if told_by_tool[0] else Say(json.dumps(verdict))
            return look_up(turn)

        served = await model(script)
        k_eval.write_text(k_eval.read_text().replace("num_repetitions: 2", "num_repetitions: 1"))
        for name, value in (("BASE_URL", served.url), ("ACCESS_TOKEN", "tok-0001"), ("AI_PROJECT", "p")):
            monkeypatch.setenv(f"VERTEX{'' if name.startswith('AI') else '_'}{name}", value)
        run = await pipeline.arun(pipeline.load(k_eval, RunOptions(cache=True)), store=store)
        self._check_run(run)
        asked, told_by_tool[0] = len(served.bodies), False
        k_eval.write_text(k_eval.read_text().replace("anthropic/claude-judge-1", "vertex_ai/claude-opus-4-5"))
        other = await pipeline.arun(pipeline.load(k_eval, RunOptions(cache=True)), store=store)
        self._check_run(other)
        assert (asked, len(served.bodies)) == (6, 9)  # the judge was tried and has judged again; no agent was asked
        from fairtrial.reports.export import export

        export(run, tmp_path / "run.eee.json")
        record = json.loads((tmp_path / "run.eee.json").read_text())
        _check_eee(record)
        names = [result["evaluation_name"] for result in record["evaluation_results"]]
        assert names[0] == "my-eval/baseline" and "my-eval/with_graph/completeness" in names
        tools = record["evaluation_results"][-1]["generation_config"]["generation_args"]["agentic_eval_config"]
        assert tools["available_tools"] == [{"name": f"graph.{name}"} for name in TOOLS]

    def _check_run(self, run: Run) -> None:
        assert run.status == "completed", [t.failure_message or t.unscored_message for t in run.trials()]
        baseline, with_graph = run.arms
        assert (baseline.aggregate.mean, with_graph.aggregate.mean) == (0.0, 1.0)
        assert with_graph.tools.used == 1 and with_graph.metrics["completeness"].mean == 5
        lifts = {lift.metric: lift.paired.difference for lift in run.summary().lifts}
        assert lifts == {"": 1.0, "factual_adherence": 4.0, "completeness": 4.0, "helpfulness_and_clarity": 4.0}


TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
EEE_ARGUMENTS = ("temperature", "top_p", "top_k", "max_tokens", "prompt_template", "agentic_eval_config")
EEE = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        *("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library"),
        "evaluation_results",
    ],
    "properties": {
        "schema_version": {"type": "string"},
        "evaluation_id": {"type": "string"},
        "evaluation_timestamp": {"type": "string"},
        "retrieved_timestamp": {"type": "string", "pattern": "^[0-9]+$"},
        "source_metadata": {
            "type": "object",
            "required": ["source_type", "source_organization_name", "evaluator_relationship"],
            "properties": {
                "source_type": {"enum": ["documentation", "evaluation_run"]},
                "evaluator_relationship": {"enum": ["first_party", "third_party", "collaborative", "other"]},
                "additional_details": TEXTS,
            },
        },
        "eval_library": {"type": "object", "required": ["name", "version"]},
        "model_info": {"type": "object", "required": ["name", "id"]},
        "evaluation_results": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["evaluation_name", "source_data", "metric_config", "score_details"],
                "properties": {
                    "source_data": {
                        "type": "object",
                        "required": ["dataset_name", "source_type"],
                        "properties": {"source_type": {"const": "other"}, "additional_details": TEXTS},
                    },
                    "metric_config": {
                        "type": "object",
                        "required": ["lower_is_better", "min_score", "max_score"],
                        "properties": {"score_type": {"enum": ["binary", "continuous", "levels"]}},
                    },
                    "score_details": {
                        "type": "object",
                        "required": ["score"],
                        "properties": {
                            "score": {"type": "number"},
                            "uncertainty": {
                                "type": "object",
                                "properties": {
                                    "standard_error": {"type": "object", "required": ["value"]},
                                    "confidence_interval": {"type": "object", "required": ["lower", "upper"]},
                                    "standard_deviation": {"type": "number"},
                                    "num_samples": {"type": "integer"},
                                },
                            },
                        },
                    },
                    "generation_config": {
                        "type": "object",
                        "properties": {
                            "generation_args": {
                                "type": "object",
                                "additionalProperties": False,
                                "properties": {name: {} for name in EEE_ARGUMENTS},
                            },
                            "additional_details": TEXTS,
                        },
                    },
                },
            },
        },
    },
}


def _check_eee(record: dict) -> None:
    """Against what the public schema asks for, in our own words."""
    import jsonschema_rs

    errors = [str(error) for error in jsonschema_rs.validator_for(EEE).iter_errors(record)]
    assert not errors, errors


async def test_records_of_several_models(run_suite, tmp_path):
    from fairtrial.core.errors import FairtrialError
    from fairtrial.reports.export import export

    targets = [{"id": name, "target": "mock:x", "options": {"answer": "4711"}} for name in ("a", "b")]
    run = await run_suite(targets=targets, cases=CASES)
    with pytest.raises(FairtrialError, match=r"eee\.jsonl"):
        export(run, tmp_path / "run.eee.json")
    export(run, tmp_path / "run.eee.jsonl")
    records = [json.loads(line) for line in (tmp_path / "run.eee.jsonl").read_text().splitlines()]
    assert [record["model_info"]["name"] for record in records] == ["x", "x"] and len(records) == 2
    for record in records:
        _check_eee(record)


async def test_case_by_case(run_suite, tmp_path, capsys):
    from fairtrial.reports.export import export

    verdict = {"marks": {"good": 5, "bad": 2}, "claims": ["It rains."]}
    run = await run_suite(
        targets=[{"id": "t", "target": "mock:x", "options": {"answer": ["good", "bad"]}}],
        scorer="golden_judge",
        judge={"target": "mock:j", "options": {"verdict": verdict}},
        repeats=2,
        cases=CASES,
    )
    export(run, tmp_path / "run.json")
    (case,) = json.loads((tmp_path / "run.json").read_text())["cases"]
    assert case["score"] == {"mean": 62.5, "std_dev": pytest.approx(53.033, abs=1e-3), "count": 2}
    assert case["metrics"]["completeness"] == {"mean": 3.5, "std_dev": pytest.approx(2.1213, abs=1e-3), "count": 2}
    assert case["claims"] == ["It rains."] and (case["case_id"], case["arm"], case["trials"]) == ("code", "t", 2)
    assert _run(["show", "--cases", "--store", run.store.address]) == 0
    assert "62.5 (sd 53.0)" in capsys.readouterr().out
    assert _run(["show", "--cases", "--json", "--store", run.store.address]) == 0
    assert json.loads(capsys.readouterr().out)["cases"] == [case]


class TestLift:
    @pytest.mark.slow
    async def test_weights_count(self, run_suite):
        answers = {"c0": ["4711", "no"]}
        target = {"id": "t", "target": "mock:x", "options": {"answers": answers, "answer": ["no", "4711"]}}
        run = await run_suite(
            targets=[target],
            conditions={"twice": {"system": "a", "repeats": 2}, "once": {"system": "b", "repeats": 1}},
            cases=[
                {"id": f"c{n}", "input": f"case {n}", "expected": "4711", "weight": 1 if n else 10} for n in range(3)
            ],
        )
        (lift,) = run.summary().lifts
        once, twice = run.arms[1].aggregate.mean, run.arms[0].aggregate.mean
        assert lift.paired.difference == pytest.approx(once - twice) == pytest.approx(4 / 12)

    @pytest.mark.slow
    async def test_what_a_condition_brings(self, run_suite, capsys):
        answers = {f"c{n}": ["4711", "4711" if n % 2 else "no"] for n in range(12)}
        targets = [{"id": "t", "target": "mock:x", "options": {"answers": answers}}]
        cases = [{"id": f"c{n}", "input": f"case {n}", "expected": "4711"} for n in range(12)]
        run = await run_suite(
            targets=targets,
            conditions={"short": {"system": "a", "repeats": 2}, "long": {"system": "b", "repeats": 1}},
            cases=cases,
        )
        (lift,) = run.summary().lifts
        assert (lift.arm, lift.baseline, lift.paired.count) == ("t/long", "t/short", 12)
        # `long` is always right; `short` is wrong in every second repeat of every second case.
        assert lift.paired.difference == pytest.approx(0.25)
        # Six differences of a half and six of none have less than one full flip's worth of spread: bounded by the scale.
        assert lift.paired.ci95 == pytest.approx((-0.0458, 0.4490), abs=1e-4)
        assert lift.paired.ci95 == pytest.approx(ft.compare(run, "t/long", "t/short").ci95)
        (back,) = run.summary("long").lifts
        assert (back.arm, back.paired.difference) == ("t/short", pytest.approx(-0.25))
        assert run.arms[0].repeat_sd == pytest.approx(0.5) and run.arms[1].repeat_sd is None
        assert _run(["show", "--baseline", "long", "--store", run.store.address]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "over t/long: −25.0 (95 % CI −44.9 to 4.6), 12 cases" in shown
        assert _run(["show", "--baseline", "wide", "--store", run.store.address]) == 1
        assert "its conditions: short, long" in capsys.readouterr().err
