"""Doubles for every kind of agent: what one has recorded, it is told again without the server."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from fairtrial import pipeline
from fairtrial.core.events import ResultEvent, read_events
from tests.programs import needed
from tests.scripted import Say, Turn, look_up
from tests.targets.test_agents import CASES, FACTS

pytestmark = pytest.mark.slow

NAMES = {"codex": "codex:m1", "gemini-cli": "gemini-cli:m1", "opencode": "opencode:openai:m1"}
AGENTS = ["tool-agent", "claude-code", "command", *NAMES]
PROGRAM = '''
"""An agent of a user: it reads where its servers are, and asks the first one."""
import json
import os
import subprocess
import sys

(server,) = json.load(open(os.environ["FAIRTRIAL_MCP_CONFIG"]))["mcpServers"].values()
messages = [
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
    {"id": 2, "method": "tools/list"},
    {"id": 3, "method": "tools/call", "params": {"name": "lookup", "arguments": {"topic": "code"}}},
]
lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\\n" for message in messages)
done = subprocess.run(
    [server["command"], *server["args"]], input=lines, capture_output=True, text=True, check=True,
    env={**os.environ, **server["env"]},
)
print(json.loads(done.stdout.splitlines()[-1])["result"]["content"][0]["text"])
'''


@pytest.fixture(params=AGENTS)
def agent(request, tmp_path) -> dict:
    name = request.param
    if name == "tool-agent":
        return {"id": name, "target": "tool-agent:openai:m1"}
    if name == "command":
        (tmp_path / "agent.py").write_text(PROGRAM)
        return {"id": name, "target": "command", "options": {"command": [sys.executable, "agent.py"]}}
    if name == "claude-code":
        return {"id": name, "target": "claude-code:m1"}
    return {"id": name, "target": NAMES[name], "options": {"program": needed(name)}}


def suite(agent: dict, server: dict, **more) -> dict:
    return {
        "targets": [agent],
        "scorer": "boolean",
        "mcp_servers": {"facts": server},
        "conditions": {"with-facts": {"mcp": ["facts"], "require_tool_use": True}},
        "cases": CASES,
        **more,
    }


def sources(trial) -> list[str]:
    return [event.source for event in read_events(trial.trace["events"]) if isinstance(event, ResultEvent)]


async def test_recorded_and_replayed(run_suite, model, agent, tmp_path):
    await model()
    program = tmp_path / "facts.py"
    program.write_text(Path(FACTS).read_text())
    server = {"command": [sys.executable, "facts.py"]}
    first = await run_suite(**suite(agent, {**server, "record": "facts"}))
    (trial,) = first.trials()
    assert trial.failure_message is None and "4711" in trial.answer and sources(trial) == ["live"]
    (row,) = [json.loads(line) for line in (tmp_path / "facts/calls.jsonl").read_text().splitlines()]
    assert (row["name"], row["arguments"]) == ("lookup", {"topic": "code"})
    program.write_text("raise SystemExit('there is no server any more')")

    run = await run_suite(**suite(agent, {**server, "replay": "facts"}))
    (again,) = run.trials()
    assert again.failure_message is None and sources(again) == ["recorded"]
    assert again.score == trial.score and (again.answer == trial.answer or agent["id"] == "codex")  # it tells times
    assert again.trace["doubles"] == {"facts": {"plays": True, "recorded": 1, "mock": 0, "live": 0, "unknown": []}}
    (call,) = again.trace["tool_calls"]
    assert (call["server"], call["tool"], call["arguments"]) == ("facts", "lookup", {"topic": "code"})


@pytest.mark.parametrize("name", ["tool-agent", "codex"])
async def test_an_unknown_call_of_an_agent_is_no_score(run_suite, model, name):
    await model()
    options = {} if name == "tool-agent" else {"options": {"program": needed(name)}}
    agent = {"id": name, "target": f"{name}:openai:m1" if name == "tool-agent" else NAMES[name], **options}
    await run_suite(**suite(agent, {"command": [sys.executable, FACTS], "record": "facts"}))

    def other(turn: Turn) -> Say:
        said = look_up(turn)
        return Say(said.text, tuple((tool, {"topic": "weather"}) for tool, _ in said.calls))

    await model(other)
    (trial,) = (await run_suite(**suite(agent, {"replay": "facts"}))).trials()
    assert trial.score is None and trial.failure_message is None
    assert trial.unscored_message == (
        'the recording has no facts.lookup(topic: "weather"); the nearest one has topic: "code"'
    )


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
@pytest.mark.parametrize("name", ["tool-agent", "codex"])
async def test_in_a_sandbox(run_suite, model, tmp_path, name):
    await model()
    options = {} if name == "tool-agent" else {"options": {"program": needed(name)}}
    agent = {"id": name, "target": f"{name}:openai:m1" if name == "tool-agent" else NAMES[name], **options}
    (tmp_path / "server.py").write_text(Path(FACTS).read_text())
    workspace = {"sandbox": "bubblewrap", "network": "model"}
    server = {"command": [sys.executable, "server.py"], "record": "facts"}
    (trial,) = (await run_suite(**suite(agent, server, workspace=workspace))).trials()
    assert trial.failure_message is None and "4711" in trial.answer and sources(trial) == ["live"]
    (trial,) = (await run_suite(**suite(agent, {"replay": "facts"}, workspace=workspace))).trials()
    assert trial.failure_message is None and "4711" in trial.answer and sources(trial) == ["recorded"]


async def test_answers_of_a_loaded_suite_are_the_same_twice(write_suite, store, model):
    await model()
    agent = {"id": "a", "target": "tool-agent:openai:m1"}
    recording = write_suite(**suite(agent, {"command": [sys.executable, FACTS], "record": "facts"}))
    await pipeline.arun(pipeline.load(recording), store=store)
    path = write_suite(**suite(agent, {"replay": "facts"}, repeats=20))
    runs = [await pipeline.arun(pipeline.load(path), store=store) for _ in range(2)]
    told = [[(trial.answer, trial.score, sources(trial)) for trial in run.trials()] for run in runs]
    assert told[0] == told[1] and len(told[0]) == 20
