"""A sandbox holds: what programs try in it, as root, as root without its rights, and as an ordinary user."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from fairtrial.agents.workspace.sandbox import Confined, docker, sandbox_problem
from fairtrial.core.workspace import WorkspaceSpec
from tests.attacks import boxes
from tests.attacks.escapes import ENDED, ESCAPES, program
from tests.processes import ended, new_mark

_PROBLEM = sandbox_problem(WorkspaceSpec(sandbox="bubblewrap"))
pytestmark = pytest.mark.skipif(bool(_PROBLEM), reason=_PROBLEM or "usable")
LIMITS = {"processes": 64, "memory_mb": 256, "disk_mb": 100}
PYTHON = [sys.executable, "-I"]


@pytest.fixture(
    params=[
        kind if kind == boxes.default_kind() else pytest.param(kind, marks=pytest.mark.attacks) for kind in boxes.KINDS
    ]
)
def kind(request):
    """Who starts the sandbox."""
    if reason := boxes.problem(request.param):
        pytest.skip(reason)
    return request.param


def test_no_attempt_leads_out(kind):
    commands = {name: [*PYTHON, "-c", program(code)] for name, code in ESCAPES.items()}
    if kind == "root in a namespace":  # the kernel limits everybody but root
        commands = {name: command for name, command in commands.items() if not name.startswith("starts too many")}
    with boxes.place(kind) as top:
        ran = boxes.run_all(kind, top, commands, **LIMITS)
        assert (top / "ro/file").read_text() == "as it was" and os.listdir(top / "ro") == ["file"]
    assert {name: one for name, one in ran.items() if "ESCAPED" in one.output} == {}
    assert {
        name: one for name, one in ran.items() if one.code and "rror: " not in one.errors
    } == {}  # they were started


@pytest.mark.parametrize("name", ENDED)
def test_who_takes_too_much_is_ended(kind, name):
    reason, code = ENDED[name]
    with boxes.place(kind) as top:
        ran = boxes.run(kind, top, [*PYTHON, "-c", program(code)], **LIMITS)
    assert "ESCAPED" not in ran.output
    assert ran.code and "the sandbox was ended: its programs" in ran.errors and reason in ran.errors, ran


def test_nothing_outlives_it(kind):
    mark = new_mark()
    code = f"os.setsid(); os.fork() or os.execlp('sh', 'sh', '-c', 'sleep 3000; : {mark}')"
    with boxes.place(kind) as top:
        boxes.run(kind, top, [*PYTHON, "-c", program(f"os.fork() or exec({code!r})")], **LIMITS)
    assert ended(mark)


def test_a_signal_to_everybody_stays_inside(kind):
    with boxes.place(kind) as top:
        boxes.run(kind, top, [*PYTHON, "-c", program("os.kill(-1, signal.SIGKILL)")], **LIMITS)
    # We are here to tell.


def test_work_is_possible(kind):
    """Who is so confined can write to its folder, read what it may, start programs, and use a home of its own."""
    code = """
open("made", "w").write(open(f"{RO}/file").read())
open(os.environ["HOME"] + "/x", "w"); open("/tmp/x", "w"); open("/dev/null", "w")
import getpass, threading, multiprocessing, tempfile
print(getpass.getuser(), os.path.expanduser("~"), subprocess.check_output(["uname"]).decode().strip())
print(sum(multiprocessing.get_context("fork").Pool(2).map(abs, [1, -2])))
"""
    with boxes.place(kind) as top:
        ran = boxes.run(kind, top, [*PYTHON, "-c", program(code)], **LIMITS)
        assert ran.output.splitlines() == ["agent /home/agent Linux", "3"], ran
        made = Path(ran.folder, "made")
        assert made.read_text() == "as it was"
        assert kind != "root" or made.stat().st_uid > 65535  # nobody's number


SPY = """#!/bin/sh
cat "$(dirname "$(dirname "$0")")/share/other/auth.json" "$(dirname "$(dirname "$0")")/.env" \
  "$(dirname "$0")/../hidden/check.py" 2> /dev/null
ls -a "$(dirname "$0")/.." | grep -x -e .env -e share -e hidden
echo ran
"""


@pytest.mark.parametrize("folder", [".local/bin", "project/bin", "bin"])
def test_what_lies_around_a_program_is_not_seen(kind, folder):
    with boxes.place(kind) as top:
        bin_ = top / folder
        for name in ("share/other/auth.json", ".env", "hidden/check.py"):
            path = bin_.parent / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("violet\n")
        bin_.mkdir(parents=True)
        (bin_ / "agent").write_text(SPY)
        (bin_ / "agent").chmod(0o755)
        ran = boxes.run(kind, top, [str(bin_ / "agent")])
    assert ran.output.split() == ["ran"], ran


def _npm(top, place):
    """A program of npm: a link to a script in a package, with packages around it."""
    packages = top / place / "lib/node_modules"
    (packages / "agent/lib").mkdir(parents=True)
    (packages / "agent/agent.js").write_text("#!/usr/bin/env node\nconsole.log(require('./lib/x'), require('dep'))\n")
    (packages / "agent/agent.js").chmod(0o755)
    (packages / "agent/lib/x.js").write_text("module.exports = 'own'\n")
    (packages / "dep").mkdir()
    (packages / "dep/index.js").write_text("module.exports = 'dep'\n")
    (top / place / "bin").mkdir()
    (top / place / "bin/agent").symlink_to("../lib/node_modules/agent/agent.js")
    return top / place / "bin/agent", "own dep"


def _environment(top, place):
    """A program in a virtual environment, with a link from elsewhere, as pipx and uv make them."""
    import venv

    venv.create(top / place / "share/tools/agent", symlinks=True)
    bin_ = top / place / "share/tools/agent/bin"
    (bin_ / "agent").write_text(f"#!{bin_}/python\nimport sys, json\nprint(sys.prefix)\n")
    (bin_ / "agent").chmod(0o755)
    (top / place / "bin").mkdir()
    (top / place / "bin/agent").symlink_to(bin_ / "agent")
    return top / place / "bin/agent", str(bin_.parent)


def _versions(top, place):
    """A program in a single file, found by a link, as installers of agents make them."""
    (top / place / "share/agent/versions").mkdir(parents=True)
    file = top / place / "share/agent/versions/1.2.3"
    file.write_text("#!/bin/sh\necho whole\n")
    file.chmod(0o755)
    (top / place / "bin").mkdir()
    (top / place / "bin/agent").symlink_to(file)
    return top / place / "bin/agent", "whole"


def _behind_a_link(top, place):
    """A home folder that is a link to another disk."""
    _, said = _versions(top, "disk/home")
    (top / place).symlink_to(top / "disk/home")
    return top / place / "bin/agent", said


@pytest.mark.parametrize("install", [_npm, _environment, _versions, _behind_a_link])
def test_programs_are_found_as_they_are_installed(kind, install):
    with boxes.place(kind) as top:
        path, said = install(top, "home")
        (top / "home/share").mkdir(exist_ok=True)
        (top / "home/share/auth.json").write_text("violet")
        ran = boxes.run(kind, top, [str(path)])
        assert ran.output.strip() == said, ran
        ran = boxes.run(kind, top, ["sh", "-c", f"{path}; cat {top}/home/share/auth.json"])
        assert "violet" not in ran.output


def test_what_docker_is_told(tmp_path, monkeypatch):
    """The same promises on another command line: nobody's user, no capabilities, and limits."""
    (tmp_path / "box").mkdir()
    (tmp_path / "box/hidden").write_text("x")
    confined = Confined(
        folder=tmp_path / "box",
        command=["sh", "-c", "true"],
        environment={"TOKEN": "violet"},
        fixed=(tmp_path / "box/hidden",),
        name="box",
        **LIMITS,
    )
    command, environment = docker(confined, "an-image")
    told = " ".join(command)
    for words in (
        "--cap-drop ALL",
        "--security-opt no-new-privileges",
        "--pids-limit 64",
        "--memory 256m --memory-swap 256m",
        "--read-only",
        "--network none",
        "--tmpfs /tmp:exec,mode=1777,size=64m",
        f"fsize={100 * 2**20}",
        f"{tmp_path}/box/hidden:{tmp_path}/box/hidden:ro",
    ):
        assert words in told
    user = int(told.partition("--user ")[2].partition(":")[0])
    assert user == (tmp_path / "box").stat().st_uid != 0
    assert "violet" not in told and environment["FAIRTRIAL_WATCH"].split("\n") == ["0", "100", str(tmp_path / "box")]
    assert "docker.sock" not in told


def test_without_a_sandbox_it_says_so(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    assert "install it" in sandbox_problem(WorkspaceSpec(sandbox="bubblewrap"))
    assert "install Docker" in sandbox_problem(WorkspaceSpec(sandbox="docker", image="x"))
    monkeypatch.setattr("sys.platform", "darwin")
    assert sandbox_problem(WorkspaceSpec(sandbox="bubblewrap")) == "bubblewrap is for Linux: use `sandbox: docker`"
