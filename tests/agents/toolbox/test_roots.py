"""A server of files keeps its own folders, whatever folder the agent works in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.agents.processes.supervised import supervised_config
from fairtrial.agents.processes.supervisor import _without_capability
from fairtrial.core.experiment import McpServer
from tests.scripted import Say
from tests.targets.test_agents import CASES

SHELF = str(Path(__file__).parents[2] / "servers" / "shelf.py")
ROOTS = {"roots": {"listChanged": True}, "elicitation": {}}


def hello(**capabilities) -> dict:
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "c"}}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


class TestLeash:
    def test_roots_are_not_announced(self):
        assert json.loads(_without_capability(json.dumps(hello(**ROOTS)).encode(), "roots")) == hello(elicitation={})

    def test_nor_by_clients_that_announce_with_every_message(self):
        key = "io.modelcontextprotocol/clientCapabilities"
        message = {"method": "tools/list", "id": 1, "params": {"_meta": {key: dict(ROOTS), "x": 1}}}
        (found,) = (json.loads(_without_capability(json.dumps(message).encode(), "roots"))["params"]["_meta"],)
        assert found == {key: {"elicitation": {}}, "x": 1}

    @pytest.mark.parametrize(
        "line",
        [
            b'{"params": {"arguments": {"roots": 1.10}}}',
            b'{"params": {"capabilities": ["roots"]}}',
            b'{"params": {"capabilities": null}} "roots"',
            b'["roots"]',
            b'"roots"',
            b'\xff"roots"',
            b'{"params": {"capabilities": {"tools": {}}}, "roots": 1e999}',
        ],
    )
    def test_everything_else_stays_as_it_is(self, line):
        assert _without_capability(line, "roots") == line

    @given(st.binary(max_size=60))
    def test_whatever_comes(self, line):
        assert _without_capability(line + b'"roots"', "roots") == line + b'"roots"'

    def test_a_program_hears_the_rest_and_the_end(self):
        """Lines of any length, half a line at the end, then nothing more."""
        echo = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()); sys.stdout.write('|the end')"
        config = supervised_config(McpServer(name="s", command=sys.executable, args=("-c", echo), env={"A": "1"}))
        assert config["env"] == {"A": "1", "FAIRTRIAL_HIDE": "roots"}
        told = supervised_config(McpServer(name="s", command="x", roots=True))
        assert "FAIRTRIAL_HIDE" not in told["env"]
        given = b"x" * 300_000 + b"\n" + json.dumps(hello(**ROOTS)).encode() + b"\nhalf"
        done = subprocess.run(
            [config["command"], *config["args"]], input=given, capture_output=True, env=config["env"], check=True
        )
        first, second, rest = done.stdout.split(b"\n")
        assert len(first) == 300_000 and rest == b"half|the end"
        assert json.loads(second) == hello(elicitation={})

    def test_a_program_that_ends_first_ends_the_leash(self):
        config = supervised_config(McpServer(name="s", command=sys.executable, args=("-c", "raise SystemExit(7)")))
        process = subprocess.Popen([config["command"], *config["args"]], stdin=subprocess.PIPE, env=config["env"])
        assert process.wait(60) == 7
        process.stdin.close()


def read_note(path: Path, tool: str):
    call = ((tool, {"path": str(path)}),)
    return lambda turn: Say(turn.results[-1]) if turn.results else Say("", call)


@pytest.fixture
def note(tmp_path) -> Path:
    """A file in a folder that is a server's."""
    folder = tmp_path / "a shelf"
    folder.mkdir()
    (folder / "note.txt").write_text("the code is 4711")
    return folder / "note.txt"


class TestToolAgent:
    @pytest.mark.slow
    @pytest.mark.parametrize("roots", [True, False])
    async def test_a_server_that_wants_it_works_in_the_workspace(self, run_suite, model, tmp_path, roots):
        """Its own folder is another one; with `roots` it reads what the agent works on."""
        (tmp_path / "start").mkdir()
        (tmp_path / "start" / "note.txt").write_text("the code is 4711")

        def script(turn):
            if len(turn.results) == 2:
                return Say(turn.results[-1])
            folder = (
                turn.results[0].partition(" not in ")[2] if turn.results else "/elsewhere"
            )  # it says what it may read
            return Say("", (("shelf__read", {"path": f"{folder}/note.txt"}),))

        await model(script)
        server = {"command": sys.executable, "args": [SHELF, str(tmp_path / "own")], "roots": roots}
        run = await run_suite(
            targets=["tool-agent:openai:m"],
            mcp_servers={"shelf": server},
            workspace={"files": str(tmp_path / "start")},
            conditions={"with-shelf": {"mcp": ["shelf"]}},
            cases=CASES,
        )
        (trial,) = run.trials()
        assert ("4711" in trial.answer) == roots, trial.answer


@pytest.mark.slow
class TestClaudeCode:
    """The real CLI, which announces the folder that it works in."""

    @pytest.mark.slow
    async def test_a_server_keeps_its_folder(self, run_suite, model, note):
        await model(read_note(note, "mcp__shelf__read"))
        run = await run_suite(
            targets=["claude-code:claude-test-1"],
            mcp_servers={"shelf": {"command": sys.executable, "args": [SHELF, str(note.parent)]}},
            conditions={"with-shelf": {"mcp": ["shelf"]}},
            scorer={"type": "regex", "pattern": "4711"},
            cases=CASES,
        )
        (trial,) = run.trials()
        assert "4711" in (trial.answer or trial.failure_message) and trial.tool_errors == 0

    @pytest.mark.skipif("TEST_NPM" not in os.environ, reason="half a minute of npm; TEST_NPM=1 has it")
    async def test_the_usual_server_of_files(self, run_suite, model, note, tmp_path):
        """The one that everybody uses, from npm."""
        package = "@modelcontextprotocol/server-filesystem@2026.8.31"
        install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path / "npm"), package]
        subprocess.run(install, capture_output=True, timeout=300, check=True)
        program = tmp_path / "npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
        await model(read_note(note, "mcp__files__read_text_file"))
        run = await run_suite(
            targets=["claude-code:claude-test-1"],
            mcp_servers={"files": {"command": "node", "args": [str(program), str(note.parent)]}},
            conditions={"with-files": {"mcp": ["files"]}},
            scorer={"type": "regex", "pattern": "4711"},
            cases=CASES,
        )
        (trial,) = run.trials()
        assert "4711" in (trial.answer or trial.failure_message) and trial.tool_errors == 0
