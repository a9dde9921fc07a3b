"""Processes that need not import fairtrial anew: each is forked off one that has, and is as real as any other.

`start("run", "suite.yaml")` is like `subprocess.Popen(["fairtrial", "run", "suite.yaml"])` with pipes, at a fifth of the
price, and in the folder of `programs()` are a `fairtrial` and a `python` of this kind for the front of PATH. How the real
programs start is shown by the tests that do not use this.
"""

from __future__ import annotations

import atexit
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

PROGRAM = "from fairtrial.cli.program import main\nmain()"  # `fairtrial` as text, for what is to come before it
# To Python, what starts it is a text: the first line of a script takes no blanks in a path, and not every length.
_SCRIPT = """#!/bin/sh
'''exec' {python} -IS "$0" "$@"
' '''
import json, os, signal, socket, sys

link = socket.socket(socket.AF_UNIX)
link.connect({address!r})
socket.send_fds(link, [b"+"], [0, 1, 2])
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: link.sendall(bytes([number])))
link.sendall(json.dumps([{name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n")
_, *code = link.makefile()
code = int(code[0]) if code else 1
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


class Process:
    """A process that was forked off, as `subprocess.Popen` would show it."""

    def __init__(self, name: str, arguments: list[str], folder: str, environment: dict[str, str]) -> None:
        self._link = socket.socket(socket.AF_UNIX)
        self._link.connect(str(programs() / "link"))
        pipes = os.pipe(), os.pipe()
        with open(os.devnull, "rb") as nothing:
            socket.send_fds(self._link, [b"+"], [nothing.fileno(), *(theirs for _, theirs in pipes)])
        self._link.sendall(json.dumps([name, arguments, folder, environment]).encode() + b"\n")
        for _, theirs in pipes:
            os.close(theirs)
        self.stdout, self.stderr = (os.fdopen(ours, "rb") for ours, _ in pipes)
        self._replies = self._link.makefile("r")
        self.pid = int(self._replies.readline())
        self.returncode: int | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        self.returncode = int(self._replies.readline() or -signal.SIGKILL)  # or whoever forks has ended
        self._replies.close()
        self._link.close()
        self._ended.set()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # as `Popen` does: it has just ended
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self) -> tuple[bytes, bytes]:
        """All that it says until its end."""
        said: list[bytes] = []
        reader = threading.Thread(target=lambda: said.append(self.stderr.read()))
        reader.start()
        out = self.stdout.read()
        reader.join()
        self.stdout.close()
        self.stderr.close()
        self.wait()
        return out, said[0]


def start(
    *arguments: Any, program: str | None = None, folder: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Process:
    """Start `fairtrial`, or a program that is given as text, with the folder and the environment of the test."""
    command = ["fairtrial"] if program is None else ["python", "-c", program]
    return _start([*command, *map(str, arguments)], folder or Path.cwd(), environment)


def start_module(module: str, *arguments: Any, folder: Path, environment: Mapping[str, str]) -> Process:
    """Start a module, as `python -m` does."""
    return _start(["python", "-m", module, *map(str, arguments)], folder, environment)


def _start(command: list[str], folder: Path, environment: Mapping[str, str]) -> Process:
    return Process(command[0], command[1:], str(folder), dict(environment))


def run(*arguments: Any, program: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    process = start(*arguments, program=program)
    out, err = process.communicate()
    return subprocess.CompletedProcess(arguments, process.wait(), out.decode(), err.decode())


def first_in(path: str) -> str:
    """Return a PATH on which the programs come first."""
    return f"{programs()}{os.pathsep}{path}"


@cache
def programs() -> Path:
    """The folder with the programs, whose process ends with this one and takes all its forks with it."""
    place = tempfile.TemporaryDirectory(prefix="forks-")
    folder = Path(place.name)
    address = str(folder / "link")
    for name in ("fairtrial", "python"):
        (folder / name).write_text(
            _SCRIPT.format(python=shlex.quote(sys.executable), address=address, name=name), "utf-8"
        )
        (folder / name).chmod(0o755)
    command = [sys.executable, "-m", "tests.forks.server", address]
    server = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout and server.stdout.readline() == b"ready\n"

    def end() -> None:
        server.communicate()
        place.cleanup()

    atexit.register(end)
    return folder
