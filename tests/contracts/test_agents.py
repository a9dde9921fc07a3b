"""One contract for every agent by name: the real programs, pointed at a scripted model, with a real MCP server."""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from docs.names import named_models
from fairtrial import pipeline
from fairtrial.cli.main import _run
from fairtrial.core import registry
from fairtrial.core.providers import known_providers
from fairtrial.workflows.resume import aresume
from tests import forks
from tests.lazily import Library
from tests.processes import ended, new_mark
from tests.programs import needed
from tests.scripted import Say, Turn
from tests.targets.test_agents import CASES, FACTS, hanging

psutil = Library("psutil")

AGENTS = {
    "claude-code": "claude-code:m1",
    "codex": "codex:m1",
    "gemini-cli": "gemini-cli:m1",
    "opencode": "opencode:openai:m1",
}
TITLES = {"claude-code": "Claude Code", "codex": "Codex", "gemini-cli": "Gemini CLI", "opencode": "opencode"}
# What they have and cannot be talked out of.
OWN_TOOLS = {"request_user_input", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"}
OWN_TOOLS |= {"DeferredToolPlaceholder"}

pytestmark = pytest.mark.slow


def test_every_agent_by_name_keeps_the_contract():
    from fairtrial.agents.program import AgentProgram

    kinds = {kind for kind in registry.builtin_names("targets") if kind not in ("tool_agent", "command")}
    programs = {kind for kind in kinds if issubclass(registry.load("targets", kind), AgentProgram)}
    names = {name for name, provider in known_providers().items() if provider.kind in programs}
    assert names | {"claude-code"} == set(AGENTS)


@pytest.fixture(params=list(AGENTS))
def agent(request) -> dict:
    """A target whose program is installed."""
    name = request.param
    options = {} if name == "claude-code" else {"program": needed(name)}
    return {"id": name, "target": AGENTS[name], "options": options}


def suite(agent: dict, server: dict) -> dict:
    return {
        "targets": [agent],
        "scorer": "boolean",
        "mcp_servers": {"facts": server},
        "conditions": {"with-facts": {"system": "Use the facts.", "mcp": ["facts"], "require_tool_use": True}},
        "cases": CASES,
        "prices": {agent["id"]: {"input": 1.0, "output": 2.0}},
    }


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """The folder for whatever a session needs and leaves nothing of."""
    forks.programs()  # has a folder as well
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


async def test_killed_and_resumed_it_gives_an_answer_with_everything_that_is_known_about_it(
    write_suite, model, agent, temporary, tmp_path, capsys
):
    served = await model()
    mark, hangs = new_mark(), tmp_path / "hangs"
    server = hanging(mark, hangs)
    server["env"]["BEHAVE_UNTIL"] = str(tmp_path / "repaired")
    path = write_suite(**suite(agent, server))
    # Only Linux ends children with their parent; opencode's two sessions take ten seconds of processor time.
    killed = sys.platform == "linux" and (agent["id"] != "opencode" or "TEST_OPENCODE" in os.environ)
    if killed:
        await _kill_minus_nine_leaves_a_journal_and_no_process(path, agent, mark, temporary, capsys)
    (tmp_path / "repaired").touch()
    asked = len(served.turns)
    run = await (aresume("latest") if killed else pipeline.arun(pipeline.load(path)))
    (trial,) = run.trials()
    assert run.status == "completed" and "4711" in trial.answer, trial.failure_message
    # The run remembers.
    assert _run(["show", "latest", "code", f"{agent['id']}/with-facts", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert "4711" in shown["answer"]
    assert shown["tried"] == (["interrupted; it was waiting for facts.lookup"] if killed else [])
    assert not list((tmp_path / ".fairtrial" / "journals").glob("*/*"))
    # The trace: which tool of which server was called, how, and what it returned.
    (call,) = trial.trace["tool_calls"]
    assert (call["server"], call["tool"], call["arguments"]) == ("facts", "lookup", {"topic": "code"})
    assert "4711" in call["result"] and not call["error"] and not call["unfinished"] and call["duration_ms"] > 0
    assert trial.trace["servers"] == {"facts": "connected"} and trial.trace["turns"] == 2 and trial.trace["session_id"]
    assert "Let me look." in json.dumps(trial.trace["messages"]) and run.arms[0].tools.used == 1
    # Tokens are counted as the API counts them; the price list gives the cost.
    prompt = 280 if agent["id"] == "claude-code" else 200
    assert (trial.prompt_tokens, trial.completion_tokens, trial.cache_read_tokens) == (prompt, 14, 80)
    assert trial.cost_usd == pytest.approx((prompt * 1.0 + 14 * 2.0) / 1e6)
    assert trial.latency_ms > 0 and trial.finish_reason == "stop"
    # The agent was given what its condition names, and nothing else.
    turn = served.turns[asked]
    assert "Use the facts." in turn.system and "What is the code?" in turn.question
    offered = set(turn.tools) - OWN_TOOLS
    assert all("facts" in name for name in offered), turn.tools
    assert len(offered) >= 5  # to some of them, `get.item` and `get_item` are one
    # The record says what it was made with, and no parameter that was never sent.
    assert run.context["packages"][TITLES[agent["id"]]][0].isdigit()
    assert run.context["arms"][0]["sent"] == {}
    # Nothing is left: no folder, not even of the process that was killed, and no process.
    assert not list(temporary.iterdir())
    assert not [child for child in psutil.Process().children(recursive=True) if "facts.py" in " ".join(child.cmdline())]


@pytest.mark.parametrize(("tools", "more"), [([], set()), (["apply_patch"], {"apply_patch"})])
async def test_a_model_that_codex_knows_gets_no_other_tools(write_suite, model, tools, more):
    """Its catalogue gives current models scripts, agents of their own and a search in the place of tools."""
    served = await model()
    agent = {"id": "codex", "target": named_models()["openai-large"].target.replace("openai:", "codex:")}
    agent["options"] = {"program": needed("codex"), "tools": tools}
    run = await pipeline.arun(pipeline.load(write_suite(**suite(agent, {"command": sys.executable, "args": [FACTS]}))))
    (trial,) = run.trials()
    assert run.status == "completed" and "4711" in trial.answer, trial.failure_message
    (call,) = trial.trace["tool_calls"]
    assert (call["server"], call["tool"]) == ("facts", "lookup")
    assert {name for name in set(served.turns[0].tools) - OWN_TOOLS if "facts" not in name} == more
    assert not [item for item in served.bodies[0]["input"] if item["type"] == "additional_tools"]


async def test_settings_and_a_schema_reach_codex(write_suite, model):
    served = await model()
    schema = {
        "type": "object",
        "properties": {"code": {"type": "string"}},
        "required": ["code"],
        "additionalProperties": False,
    }
    options = {"program": needed("codex"), "output_schema": schema, "tools": ["shell"]}
    options["settings"] = {"sandbox_mode": "read-only", "include_permissions_instructions": True}
    agent = {"id": "codex", "target": "codex:m1", "options": options}
    run = await pipeline.arun(pipeline.load(write_suite(**suite(agent, {"command": sys.executable, "args": [FACTS]}))))
    (trial,) = run.trials()
    assert run.status == "completed", trial.failure_message
    assert served.bodies[0]["text"]["format"]["schema"] == schema
    assert "`read-only`" in json.dumps(served.bodies[0]["input"])  # what it tells its model about the sandbox


async def _kill_minus_nine_leaves_a_journal_and_no_process(path, agent, mark, temporary, capsys):
    """The tool hangs while fairtrial is killed without a word; `targets/test_agents.py` kills one that was no fork."""
    program = f"import tempfile\ntempfile.tempdir = {str(temporary)!r}\n{forks.PROGRAM}"
    process = forks.start("run", path, "-q", program=program)
    journals = path.parent / ".fairtrial" / "journals"
    states: list[dict] = []
    while not (states and "facts.lookup" in states[0].get("doing", "")):
        assert process.poll() is None
        await asyncio.sleep(0.1)
        states = [json.loads(file.read_text()) for file in journals.glob("*/*.json")]
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert await asyncio.to_thread(ended, mark)  # the server is gone …
    assert await asyncio.to_thread(
        ended, str(temporary / f"fairtrial-{agent['id'].partition('-')[0]}")
    )  # … and the agent
    # What it did is readable, up to the call that hung.
    assert _run(["show", "latest", "--sessions"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "it was waiting for facts.lookup" in page and '{"topic": "code"} did not finish' in page.replace(
        "(", ""
    ).replace(")", "")


async def test_who_has_no_turns_left_is_scored_by_what_is_there(run_suite, model, agent):
    """The file that a check looks for is in place when the agent, which never comes to an end, is stopped."""
    await model(lambda turn: Say("Once more.", ((_lookup(turn), {"topic": "code"}),)))
    agent["options"] = {**agent["options"], "max_turns": 2}
    server = {"command": sys.executable, "args": [FACTS], "env": {"LEAVES": "{{ workspace }}/answer.txt"}}
    check = {"type": "check", "command": "grep -qx 4711 answer.txt"}
    run = await run_suite(**{**suite(agent, server), "scorer": check}, workspace={})
    (trial,) = run.trials()
    assert (trial.limit, trial.limit_value, trial.score) == ("turns", 2, 1.0), trial.failure_message
    assert [event["kind"] for event in trial.trace["events"] if event["type"] == "limit"] == ["turns"]
    assert run.arms[0].limits == {"turns": 1}


def _lookup(turn: Turn) -> str:
    return next(name for name in turn.tools if name.endswith("lookup"))


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
@pytest.mark.parametrize(
    "name", ["codex", *(pytest.param(name, marks=pytest.mark.attacks) for name in AGENTS if name != "codex")]
)
async def test_in_a_sandbox_with_nothing_but_its_model(run_suite, model, tmp_path, name):
    """It reaches its model and its server, which starts beside the suite and runs in the sandbox; Codex is the quickest."""
    await model()
    options = {} if name == "claude-code" else {"program": needed(name)}
    agent = {"id": name, "target": AGENTS[name], "options": options}
    (tmp_path / "server.py").write_text(Path(FACTS).read_text())
    server = {"command": sys.executable, "args": ["server.py"], "env": {"BEHAVE": ""}}
    run = await run_suite(**suite(agent, server), workspace={"sandbox": "bubblewrap", "network": "model"})
    (trial,) = run.trials()
    assert trial.failure_message is None and "4711" in trial.answer and run.arms[0].tools.used == 1
