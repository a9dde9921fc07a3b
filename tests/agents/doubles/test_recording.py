"""What is recorded is there: of servers elsewhere, of public ones, and if fairtrial is killed."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.core.events import ResultEvent, read_events
from fairtrial.workflows.resume import aresume
from tests import forks
from tests.agents.doubles.test_doubles import AGENT, SHOP, live, making, recorded, sources, suite
from tests.ports import free_port
from tests.programs import needed
from tests.scripted import Say, Turn
from tests.targets.test_agents import CASES, OFFICIAL, _listening

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("transport", "path"), [("http", "/mcp"), ("sse", "/sse")])
async def test_servers_over_http(run_suite, model, monkeypatch, tmp_path, transport, path):
    """Recorded with a header that holds a secret, and replayed once the server is gone."""
    await model()
    monkeypatch.setenv("SHELF_KEY", "open sesame")
    port = free_port()
    process = subprocess.Popen([forks.programs() / "python", OFFICIAL, transport, str(port)])
    server = {"type": transport, "url": f"http://127.0.0.1:{port}{path}", "headers": {"X-Key": "${SHELF_KEY}"}}
    keys = {"cases": CASES, "scorer": "boolean"}
    try:
        await _listening(port)
        (trial,) = (await run_suite(**suite({**server, "record": "r"}, **keys))).trials()
        assert trial.score == 1 and sources(trial) == ["live"], trial.failure_message
    finally:
        process.kill()
        process.wait()
    assert "sesame" not in "".join(file.read_text() for file in (tmp_path / "r").iterdir())
    for entry in ({**server, "replay": "r"}, {"replay": "r"}):
        (trial,) = (await run_suite(**suite(entry, **keys))).trials()
        assert trial.score == 1 and sources(trial) == ["recorded"], trial.failure_message


async def test_killed_while_it_records(write_suite, store, model, tmp_path):
    """What passed until then is readable, can be replayed, and is completed by `resume`."""
    await model(making(("stock", {"thing": "apple"}), ("buy", {"thing": "apple"}), ("stock", {"thing": "apple"})))
    server = live(record="r", env={"SHOP_REPAIRED": str(tmp_path / "repaired")})
    process = forks.start("run", write_suite(**suite(server)), "-q")
    parts = tmp_path / "r/parts"
    seen: list[str] = []
    while len(seen) < 3:  # the case and two calls; the third call hangs
        assert process.poll() is None
        await asyncio.sleep(0.1)
        seen = [line for file in parts.glob("*.jsonl") for line in file.read_text().splitlines()]
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [json.loads(line)["name"] for line in seen[1:]] == ["stock", "buy"]
    path = write_suite("replay.yaml", **suite({"replay": "r"}))
    (trial,) = (await pipeline.arun(pipeline.load(path), store=store)).trials()
    assert (
        sources(trial) == ["recorded"] * 3
    )  # the stock is read once more: a shop that is only looked at does not change
    assert trial.answer == "3 of apple | you have 1 | 3 of apple" and trial.score == 0

    (tmp_path / "repaired").touch()
    (trial,) = (await aresume("latest")).trials()
    assert trial.score == 1
    assert not parts.exists() and [len(row["results"]) for row in recorded(tmp_path / "r")] == [1, 2]
    (trial,) = (await pipeline.arun(pipeline.load(path), store=store)).trials()
    assert trial.score == 1


def with_mark(marks: Path, command: list[str], **more) -> dict:
    """A server that leaves a mark when it is started."""
    return {"command": ["sh", "-c", 'touch "$0/$$"; exec "$@"', str(marks), *command], **more}


def _npm_servers(folder: Path) -> tuple[dict[str, list[str]], list[tuple[str, dict]]]:
    programs = {name: needed(f"server-{name}") for name in ("everything", "filesystem", "memory")}
    (folder / "files").mkdir()
    (folder / "files/a.txt").write_text("an apple")
    entities = [{"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}]
    wanted: list[tuple[str, dict]] = [
        ("everything__echo", {"message": "hello"}),
        ("filesystem__list_directory", {"path": str(folder / "files")}),
        ("filesystem__read_text_file", {"path": str(folder / "files/a.txt")}),
        ("memory__create_entities", {"entities": entities}),
        ("memory__read_graph", {}),
    ]
    commands = {"everything": [programs["everything"]], "memory": [programs["memory"]]}
    return {**commands, "filesystem": [programs["filesystem"], str(folder / "files")]}, wanted


def _python_servers(folder: Path) -> tuple[dict[str, list[str]], list[tuple[str, dict]]]:
    programs = Path(sys.executable).parent
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder / "repository")]
    (folder / "repository").mkdir()
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "first"], check=True)
    day = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    wanted: list[tuple[str, dict]] = [
        ("time__get_current_time", {"timezone": "Asia/Tokyo"}),
        ("time__convert_time", day),
        ("git__git_log", {"repo_path": str(folder / "repository")}),
    ]
    commands = {
        "time": [str(programs / "mcp-server-time")],
        "git": [str(programs / "mcp-server-git"), "--repository", str(folder / "repository")],
    }
    return commands, wanted


@pytest.mark.parametrize("servers", [_npm_servers, _python_servers])
async def test_public_servers_replayed_a_hundred_times(run_suite, model, tmp_path, servers):
    if any(shutil.which(program) is None for program in ("git", "node")):
        pytest.skip("there is no git or node")
    commands, wanted = servers(tmp_path)
    marks = tmp_path / "marks"
    marks.mkdir()
    await model(making(*wanted))
    keys = suite({}, scorer="boolean", conditions={"all": {"mcp": list(commands)}}, cases=CASES)

    def entries(**more: str) -> dict:
        return {
            name: with_mark(marks, command, **{key: f"{key_}/{name}" for key, key_ in more.items()})
            for name, command in commands.items()
        }

    first = await run_suite(**{**keys, "mcp_servers": entries(record="cassettes")})
    (trial,) = first.trials()
    calls = trial.trace["tool_calls"]
    assert len(calls) == len(wanted) and not any(call["error"] for call in calls), calls
    started = len(list(marks.iterdir()))
    assert started >= 2 * len(commands)
    # The servers' own data is gone, too.
    for name in ("files", "repository"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    replay = {**keys, "mcp_servers": entries(replay="cassettes"), "repeats": 100}
    run = await run_suite(**replay)
    told = [[call["result"] for call in trial.trace["tool_calls"]] for trial in run.trials()]
    assert told == [[call["result"] for call in calls]] * 100
    assert {(other.answer, other.score) for other in run.trials()} == {(trial.answer, trial.score)}
    assert {event.source for other in run.trials() for event in _results(other)} == {"recorded"}
    assert len(list(marks.iterdir())) == started  # not one of them was started
    assert _offers(run) == _offers(first)


def _results(trial) -> list[ResultEvent]:
    return [event for event in read_events(trial.trace["events"]) if isinstance(event, ResultEvent)]


def _offers(run: Run) -> list[tuple]:
    return [(item["server"], item["name"], item["version"], item["tools"]) for item in run.context["mcp_servers"]]


async def test_resources_and_prompts(run_suite, model):
    """What a server has besides tools is recorded and replayed as well."""
    agent = {**AGENT, "options": {"resources": True, "prompts": True}}

    def script(turn: Turn) -> Say:
        names = {"resource": "read_resource", "prompt": "get_prompt"}
        tools = {kind: next(tool for tool in turn.tools if tool.endswith(name)) for kind, name in names.items()}
        if not turn.results:
            uri = "demo://resource/static/document/features.md"
            return Say("", ((tools["resource"], {"uri": uri}), (tools["prompt"], {"name": "simple-prompt"})))
        return Say(" | ".join(turn.results))

    await model(script)
    server = {"command": [needed("server-everything")], "record": "r"}
    keys = {"targets": [agent], "scorer": "boolean"}
    (trial,) = (await run_suite(**suite(server, **keys))).trials()
    assert not any(call["error"] for call in trial.trace["tool_calls"]), trial.trace["tool_calls"]
    (again,) = (await run_suite(**suite({"replay": "r"}, **keys))).trials()
    assert again.answer == trial.answer and sources(again) == ["recorded", "recorded"]


def test_the_shop_is_a_server():
    """The one that these tests are about, without anything in its place."""
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "secret"}})
    done = subprocess.run([sys.executable, SHOP], input=line, capture_output=True, text=True, check=True)
    assert "the key is" in done.stdout
