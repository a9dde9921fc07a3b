"""Sandboxes: what agents cannot do in them, tried by programs that want to; and the way to their model that is left."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairtrial.agents.workspace.gateway import Address, address_of
from fairtrial.agents.workspace.sandbox import sandbox_problem
from fairtrial.core.workspace import WorkspaceSpec
from tests.processes import ended, unmistakable
from tests.scripted import Say

_PROBLEM = sandbox_problem(WorkspaceSpec(sandbox="bubblewrap"))
bubblewrap = pytest.mark.skipif(bool(_PROBLEM), reason=_PROBLEM or "usable")
PYTHON = sys.executable
SHELL_PYTHON = shlex.quote(PYTHON)
ASK = """
import json, sys, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-test-key-0001"}
request = urllib.request.Request(sys.argv[1] + "/chat/completions", body, headers)
try:
    print(json.load(urllib.request.urlopen(request, timeout=30))["choices"][0]["message"]["content"])
except OSError as error:
    sys.exit(f"no way: {error}")
"""


def agent(**env: str) -> dict:
    options = {"command": ["sh", "agent.sh"], "env": env}
    return {"id": "agent", "target": "command", "options": options}


@pytest.fixture
def place(tmp_path) -> Path:
    (tmp_path / "agent.sh").write_text('set -e\neval "$(cat)"\n')
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "right.txt").write_text("the right answer")
    return tmp_path


@pytest.mark.slow
@bubblewrap
async def test_what_an_agent_tries_in_vain_is_reported(run_suite, place, tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    (home / "secret.txt").write_text("violet")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SHOP_TOKEN", "tok-4711")
    mark = unmistakable(3000)
    socket = f"{SHELL_PYTHON} -c 'import socket; socket.create_connection((\"127.0.0.1\", 22), 5)'"
    tasks = {
        "home": f"cat {home}/secret.txt",
        "network": socket,
        "hidden": f"cat {place}/tests/right.txt",
        "store": f"ls {place}/test.db",
        "system": "touch /usr/bin/evil",
        "root": "touch /evil",
        "fine": f"echo $HOME $SHOP_TOKEN; touch /tmp/a $HOME/b; sleep {mark} & echo right > done.txt",
    }
    run = await run_suite(
        targets=[agent()],
        workspace={"sandbox": "bubblewrap"},
        scorer={"type": "check", "command": f"cat done.txt right.txt; ! ls {home}; ! {socket}", "files": "tests"},
        cases=[{"id": name, "input": task} for name, task in tasks.items()],
        concurrency=4,
    )
    trials = {trial.case_id: trial for trial in run.trials()}
    reasons = {
        "home": "secret.txt: No such file or directory",
        "network": "refused",
        "hidden": "right.txt: No such file or directory",
        "store": "test.db",
        "system": "Read-only file system",
        "root": "Read-only file system",
    }
    for name, reason in reasons.items():
        message = trials[name].failure_message
        assert message and reason in message, (name, message)
        assert "in bubblewrap, with no network" in message
    fine = trials["fine"]
    assert (fine.answer, fine.score) == ("/home/agent", 1.0), fine.failure_message or fine.notes
    assert fine.details["check"]["output"].startswith("right\nthe right answer")
    assert ended(mark)  # what it left behind went with the sandbox


@pytest.mark.slow
@bubblewrap
async def test_only_the_model_can_be_reached(run_suite, place, model):
    served, other = await model(lambda turn: Say("from the model")), await model(lambda turn: Say("from another"))
    assert served.url != other.url
    (place / "ask.py").write_text(ASK)
    cases = [
        {"id": "model", "input": f"{SHELL_PYTHON} {place}/ask.py {served.url}/v1"},
        {"id": "other", "input": f"{SHELL_PYTHON} {place}/ask.py {other.url}/v1"},
        {"id": "proxied", "input": f"NO_PROXY= {SHELL_PYTHON} {place}/ask.py {other.url}/v1"},
        {"id": "through", "input": f"NO_PROXY= {SHELL_PYTHON} {place}/ask.py {served.url}/v1"},
    ]
    for network in ("model", [served.url], True):
        run = await run_suite(
            targets=[agent(OPENAI_BASE_URL=f"{served.url}/v1")],
            workspace={"sandbox": "bubblewrap", "network": network, "read": "ask.py"},
            scorer={"type": "check", "command": "true"},
            cases=cases,
        )
        trials = {trial.case_id: trial for trial in run.trials()}
        for name in ("model", "through"):
            assert trials[name].answer == "from the model", (network, trials[name].failure_message)
        for name in ("other", "proxied"):
            if network is True:
                assert trials[name].answer == "from another"
            else:
                assert "no way" in trials[name].failure_message
                assert f"of the network only {served.url[7:]}" in trials[name].failure_message
    assert len(other.bodies) == 2


@bubblewrap
async def test_the_model_can_be_reached_from_any_temporary_folder(run_suite, place, model, monkeypatch):
    """The path of a socket has 107 bytes at most."""
    long = place / f"ö ä {'x' * 120}"
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    served = await model(lambda turn: Say("from the model"))
    (place / "ask.py").write_text(ASK)
    run = await run_suite(
        targets=[agent(OPENAI_BASE_URL=f"{served.url}/v1")],
        workspace={"sandbox": "bubblewrap", "network": "model", "read": "ask.py"},
        scorer={"type": "check", "command": "true"},
        cases=[{"id": "model", "input": f"{SHELL_PYTHON} {place}/ask.py {served.url}/v1"}],
    )
    (trial,) = run.trials()
    assert trial.answer == "from the model", trial.failure_message
    assert not list(long.iterdir())


@bubblewrap
@pytest.mark.slow
async def test_claude_code_in_a_sandbox(run_suite, place, model, monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / "secret.txt").write_text("violet")
    monkeypatch.setenv("HOME", str(home))

    def script(turn) -> Say:
        if not turn.results:
            return Say("", (("Bash", {"command": f"cat {home}/secret.txt; echo made > file.txt"}),))
        return Say(turn.results[-1])

    await model(script)
    run = await run_suite(
        targets=[{"target": "claude-code:claude-test-1", "options": {"tools": ["Bash"]}}],
        workspace={"sandbox": "bubblewrap", "network": "model"},
        scorer={"type": "check", "command": "grep made file.txt"},
        cases=[{"id": "x", "input": "Read my secret."}],
    )
    (trial,) = run.trials()
    assert trial.score == 1.0, trial.failure_message or trial.notes
    assert "violet" not in json.dumps(trial.trace) and "No such file" in trial.trace["tool_calls"][0]["result"]


@pytest.mark.slow
@bubblewrap
async def test_servers_of_a_tool_agent_are_inside(run_suite, place, model, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.txt").write_text("violet")
    (place / "server.py").write_text(
        "import pathlib\n"
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('files')\n"
        "@server.tool()\n"
        "def lookup(topic: str) -> str:\n"
        "    pathlib.Path('asked').write_text(topic)\n"
        f"    return str(pathlib.Path({str(outside)!r}, 'secret.txt').exists())\n"
        "server.run()\n"
    )
    await model()
    run = await run_suite(
        targets=["tool-agent:openai:m"],
        mcp_servers={"files": {"command": PYTHON, "args": ["server.py"], "cwd": "{{ workspace }}"}},
        conditions={"c": {"mcp": ["files"]}},
        workspace={"sandbox": "bubblewrap", "read": "server.py"},
        scorer={"type": "all_of", "scorers": [{"type": "check", "command": "test -s asked"}, "contains"]},
        cases=[{"input": "Is it there?", "expected": "False"}],
    )
    (trial,) = run.trials()
    assert trial.score == 1.0, trial.failure_message or f"{trial.answer}: {trial.notes}"


def _docker_problem() -> str:
    if shutil.which("docker") is None:
        return "there is no docker on this machine"
    done = subprocess.run(["docker", "info"], capture_output=True, timeout=60, check=False)
    return "" if done.returncode == 0 else "docker's daemon does not answer"


async def test_in_a_container(run_suite, place):
    if problem := _docker_problem():
        pytest.skip(problem)
    run = await run_suite(
        targets=[agent()],
        workspace={"sandbox": "docker", "image": "debian:stable-slim"},
        scorer={"type": "check", "command": "cat done.txt right.txt", "files": "tests"},
        cases=[{"id": "fine", "input": "echo right > done.txt"}, {"id": "hidden", "input": f"ls {place}/tests"}],
    )
    trials = {trial.case_id: trial for trial in run.trials()}
    assert trials["fine"].score == 1.0, trials["fine"].failure_message
    assert "in docker, with no network" in trials["hidden"].failure_message


DOCKER = """#!/bin/sh
# Stands in for docker's client: writes down what it was asked, and runs what stands after the image.
echo "$@" >> "$DOCKER_LOG"
[ "$1" = rm ] && exit 0
while [ "$1" != an-image ]; do
  [ "$1" = --workdir ] && cd "$2"
  shift
done
shift; exec "$@"
"""


async def test_what_docker_is_told(run_suite, place, monkeypatch, tmp_path_factory):
    programs = tmp_path_factory.mktemp("bin")
    (programs / "docker").write_text(DOCKER)
    (programs / "docker").chmod(0o755)
    log = place / "docker.log"
    monkeypatch.setenv("PATH", f"{programs}:{shutil.os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_LOG", str(log))
    monkeypatch.setenv("SHOP_TOKEN", "tok-4711-violet")
    run = await run_suite(
        targets=[agent(TOKEN="${SHOP_TOKEN}")],
        workspace={"sandbox": "docker", "image": "an-image", "setup": "echo 1 > one.txt"},
        scorer={"type": "check", "command": "cat one.txt two.txt right.txt", "files": "tests"},
        cases=[{"id": "x", "input": "echo $TOKEN | wc -c > two.txt; echo done"}],
    )
    (trial,) = run.trials()
    assert trial.score == 1.0, trial.failure_message or trial.notes
    asked = log.read_text()
    setup, first, *_ = [line for line in asked.splitlines() if line.startswith("run ")]
    assert "--network bridge" in setup and "--network none" in first
    assert "--read-only" in first and f"{place}/agent.sh:{place}/agent.sh:ro" in first and "--env TOKEN " in first
    assert "violet" not in asked  # command lines can be read by everybody
    names = {line.split("--name ")[1].split()[0] for line in asked.splitlines() if line.startswith("run ")}
    assert all(f"rm --force {name}" in asked for name in names)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://api.example.com/v1", ("api.example.com", 443)),
        ("http://127.0.0.1:8080/v1", ("127.0.0.1", 8080)),
        ("api.example.com", ("api.example.com", 443)),
        ("api.example.com:8443", ("api.example.com", 8443)),
    ],
)
def test_addresses(text, address):
    assert address_of(text) == Address(*address)
