"""The supervisor: nothing outlives it, a thread that ends is no parent that ends, and what reaches a server is noted."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairtrial.agents.notes import ServerNotes
from fairtrial.agents.processes.process import end, start
from fairtrial.agents.processes.supervised import supervised, supervised_config
from fairtrial.core.experiment import McpServer
from tests.processes import ended, unmistakable
from tests.servers import facts as facts_module

FACTS = str(Path(facts_module.__file__))
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's help")
DAEMON = "import os, sys; os.fork() and sys.exit(); os.setsid(); os.fork() and sys.exit(); os.execlp('sleep', 'sleep', sys.argv[1])"


@linux
async def test_a_daemon_ends_with_the_program_that_started_it(tmp_path):
    """It has left the process group, the session and its parent."""
    mark = unmistakable(3000)
    script = f'{shlex.quote(sys.executable)} -c "{DAEMON}" {mark}; echo ready; exec sleep {unmistakable(3000)}'
    process = await start(["sh", "-c", script], tmp_path, os.environ)
    assert await process.stdout.readline() == b"ready\n"
    await end(process)
    assert ended(mark)


@linux
def test_a_daemon_ends_also_if_nobody_was_left_to_end_it():
    mark = unmistakable(3000)
    script = f'{shlex.quote(sys.executable)} -c "{DAEMON}" {mark}; echo ready; exec sleep {unmistakable(3000)}'
    parent = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
    process = subprocess.Popen(
        [sys.executable, "-c", parent, *supervised("sh", "-c", script)], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert ended(mark)


@linux
def test_the_end_of_a_thread_is_not_the_end_of_its_process(tmp_path):
    """Programs with many threads start servers in one of them, which may end long before the others."""
    parent = (
        "import subprocess, sys, threading\n"
        "found = []\n"
        "def begin(): found.append(subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE))\n"
        "thread = threading.Thread(target=begin); thread.start(); thread.join()\n"
        "assert found[0].stdout.readline() == b'ready\\n'\n"  # the thread has long ended
        "found[0].stdin.write(b'again\\n'); found[0].stdin.flush()\n"
        "print(found[0].stdout.readline().decode())\n"
    )
    program = supervised("sh", "-c", "sleep 0.2; echo ready; exec cat")
    done = subprocess.run([sys.executable, "-c", parent, *program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "again", done.stderr


class TestNotes:
    def talk(self, folder: Path, server: McpServer, *messages: dict) -> tuple[ServerNotes, list[dict]]:
        """Say something to a server under its supervisor; what was noted, and what came back."""
        notes = ServerNotes(folder / "notes", [server])
        config = supervised_config(server, notes.file(server.name), keep=["PATH"])
        text = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
        done = subprocess.run(
            [config["command"], *config["args"]],
            input=text.encode(),
            capture_output=True,
            env={**os.environ, **config["env"]},
            check=True,
        )
        return notes, [json.loads(line) for line in done.stdout.splitlines()]

    def test_calls_and_what_they_returned(self, tmp_path):
        server = McpServer(name="facts", command=sys.executable, args=(FACTS,), env={"BEHAVE": ""})
        call = {"name": "lookup", "arguments": {"topic": "code"}}
        notes, replies = self.talk(
            tmp_path,
            server,
            {"id": 1, "method": "tools/list"},
            {"id": 2, "method": "tools/call", "params": call},
            {"id": "three", "method": "tools/call", "params": {"name": "nope"}},
        )
        assert [reply["id"] for reply in replies] == [1, 2, "three"]
        found, failed = notes.calls()
        assert (found.server, found.tool, found.arguments) == ("facts", "lookup", {"topic": "code"})
        assert found.result == "The code is 4711." and not found.error and found.duration_ms >= 0
        assert failed.tool == "nope" and failed.error and notes.listed("facts")
        assert notes.unreported([found]) == (failed,) and notes.unreported([found, failed]) == ()

    def test_a_call_that_never_returned(self, tmp_path):
        server = McpServer(name="s", command="cat")  # it says everything back, and answers nothing
        notes, _ = self.talk(tmp_path, server, {"id": 1, "method": "tools/call", "params": {"name": "slow"}})
        (call,) = notes.calls()
        assert call.unfinished and call.tool == "slow"

    def test_a_server_that_nobody_asked(self, tmp_path):
        notes, _ = self.talk(tmp_path, McpServer(name="s", command="cat"), {"id": 1, "method": "initialize"})
        assert notes.calls() is None and notes.listed("s") is False and notes.listed("a server elsewhere") is None

    def test_long_results_are_cut_between_words(self, tmp_path):
        reply = {"id": 1, "result": {"content": [{"type": "text", "text": "word " * 10_000}]}}
        command = f"read line; printf '%s\\n' '{json.dumps(reply)}'"
        server = McpServer(name="s", command="sh", args=("-c", command))
        notes, (whole,) = self.talk(tmp_path, server, {"id": 1, "method": "tools/call", "params": {"name": "t"}})
        (call,) = notes.calls()
        assert len(call.result) < 20_010 and call.result.endswith("word …") and whole == reply

    def test_secrets_of_the_agent_stay_with_it(self, tmp_path, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-0001")
        server = McpServer(name="s", command="sh", args=("-c", "env > seen"), env={"A": "1"}, cwd=str(tmp_path))
        self.talk(tmp_path, server)
        seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines() if "=" in line)
        assert seen["A"] == "1" and "PATH" in seen and not any("KEY" in name or "FAIRTRIAL" in name for name in seen)


def test_it_starts_quickly():
    """It is started for every server of every trial; nothing heavy may creep in."""
    python, *arguments = supervised("true")
    done = subprocess.run([python, "-X", "importtime", *arguments], capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "ctypes" in imported and not {"typing", "json", "asyncio", "subprocess", "re", "enum", "signal"} & imported
