"""One contract for every agent by name: the real programs, pointed at a scripted model, with a real MCP server."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from fairtrial.cli.main import _run
from fairtrial.core import registry
from fairtrial.core.providers import known_providers
from fairtrial.workflows.resume import aresume
from tests.processes import ended, new_mark
from tests.programs import needed
from tests.targets.test_agents import CASES, FACTS, facts, hanging

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
    from fairtrial.agent.program import AgentProgram

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


async def test_an_answer_with_everything_that_is_known_about_it(run_suite, model, agent, monkeypatch, tmp_path):
    served = await model()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    run = await run_suite(**suite(agent, facts()))
    (trial,) = run.trials()
    assert run.status == "completed" and "4711" in trial.answer, trial.failure_message
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
    turn = served.turns[0]
    assert "Use the facts." in turn.system and "What is the code?" in turn.question
    offered = set(turn.tools) - OWN_TOOLS
    assert all("facts" in name for name in offered), turn.tools
    assert len(offered) >= 5  # to some of them, `get.item` and `get_item` are one
    # The record says what it was made with, and no parameter that was never sent.
    assert run.context["packages"][TITLES[agent["id"]]][0].isdigit()
    assert run.context["arms"][0]["sent"] == {}
    # Nothing is left: no folder, no process.
    assert not list((tmp_path / "temporary").iterdir())
    assert not [child for child in psutil.Process().children(recursive=True) if "facts.py" in " ".join(child.cmdline())]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
async def test_kill_minus_nine_leaves_a_journal_and_no_process(write_suite, model, agent, tmp_path, capsys):
    """The tool hangs while fairtrial is killed without a word; the run goes on where it was."""
    if agent["id"] == "opencode" and "TEST_OPENCODE" not in os.environ:
        pytest.skip("20 seconds of processor time for its two sessions; TEST_OPENCODE=1 has it")
    await model()
    mark, hangs = new_mark(), tmp_path / "hangs"
    server = hanging(mark, hangs)
    server["env"]["BEHAVE_UNTIL"] = str(tmp_path / "repaired")
    path = write_suite(**suite(agent, server))
    command = [sys.executable, "-m", "fairtrial", "run", str(path), "-q"]
    process = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})
    journals = tmp_path / ".fairtrial" / "journals"
    states: list[dict] = []
    while not (states and "facts.lookup" in states[0].get("doing", "")):
        assert process.poll() is None
        await asyncio.sleep(0.1)
        states = [json.loads(file.read_text()) for file in journals.glob("*/*.json")]
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert await asyncio.to_thread(ended, mark)  # the server is gone …
    assert await asyncio.to_thread(
        ended, str(tmp_path / f"fairtrial-{agent['id'].partition('-')[0]}")
    )  # … and the agent
    # What it did is readable, up to the call that hung.
    assert _run(["show", "latest", "--sessions"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "it was waiting for facts.lookup" in page and "{'topic': 'code'} did not finish" in page.replace(
        "(", ""
    ).replace(")", "")
    # The run goes on, and remembers.
    (tmp_path / "repaired").touch()
    assert (await aresume("latest")).status == "completed"
    assert _run(["show", "latest", "code", f"{agent['id']}/with-facts", "--json"]) == 0
    trial = json.loads(capsys.readouterr().out)
    assert "4711" in trial["answer"] and trial["tried"] == ["interrupted; it was waiting for facts.lookup"]
    assert not list(journals.glob("*/*"))


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
async def test_in_a_sandbox_with_nothing_but_its_model(run_suite, model, tmp_path):
    """Codex, the quickest: it reaches its model and its server, which starts beside the suite and runs in the sandbox."""
    await model()
    agent = {"id": "codex", "target": AGENTS["codex"], "options": {"program": needed("codex")}}
    (tmp_path / "server.py").write_text(Path(FACTS).read_text())
    server = {"command": sys.executable, "args": ["server.py"], "env": {"BEHAVE": ""}}
    run = await run_suite(**suite(agent, server), workspace={"sandbox": "bubblewrap", "network": "model"})
    (trial,) = run.trials()
    assert trial.failure_message is None and "4711" in trial.answer and run.arms[0].tools.used == 1
