"""Runs programs in a sandbox as root, as root that cannot change its user, and as an ordinary user.

Started as a script, it reads commands and limits as JSON, and tells how they ended.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

USER = 61_234  # a number without an account: as ordinary as can be
KINDS = ("root", "root in a namespace", "an ordinary user")


class Ran(NamedTuple):
    """What a program in a sandbox came to."""

    code: int
    output: str
    errors: str
    folder: str


def default_kind() -> str:
    """The kind that whoever runs the tests gets."""
    return "root" if os.getuid() == 0 else "an ordinary user"


def problem(kind: str) -> str:
    """Why this kind cannot be tried here."""
    if kind == default_kind():
        return ""
    if os.getuid() != 0:
        return "only root can try this as somebody else"
    if kind == "an ordinary user":
        seen = _as_user([sys.executable, "-c", "import fairtrial.agents.workspace.sandbox"])
        if subprocess.run(seen, capture_output=True, check=False).returncode:
            return "an ordinary user cannot read this checkout"
    return ""


def _as_user(command: list[str]) -> list[str]:
    return ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--inh-caps=-all", *command]


@contextmanager
def place(kind: str) -> Iterator[Path]:
    """A folder with what a sandbox may read, what it may not, and somebody who listens."""
    top = Path(tempfile.mkdtemp(prefix="fairtrial-attacks-", dir="/tmp"))
    top.chmod(0o755)
    try:
        for name in ("ro", "out"):
            (top / name).mkdir(parents=True)
        (top / "ro/file").write_text("as it was")
        (top / "out/secret").write_text("violet")
        if kind == "an ordinary user" and os.getuid() == 0:
            for path in (top, *top.rglob("*")):
                os.chown(path, USER, USER)
        yield top
    finally:
        shutil.rmtree(top, ignore_errors=True)


def run(kind: str, top: Path, command: list[str], **limits: Any) -> Ran:
    """Run a command in a sandbox of this kind."""
    return run_all(kind, top, {"it": command}, **limits)["it"]


def run_all(kind: str, top: Path, commands: dict[str, list[str]], **limits: Any) -> dict[str, Ran]:
    """Run each of several commands in a sandbox of its own."""
    task = json.dumps({"commands": commands, "limits": limits, "host": os.getpid()})
    script = [sys.executable, __file__, str(top), kind]
    if kind == "an ordinary user" and os.getuid() == 0:
        script = _as_user(script)
    environment = {**os.environ, "SHOP_TOKEN": "violet", "HOME": str(top), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        script, input=task, capture_output=True, text=True, check=False, timeout=1800, env=environment
    )
    assert done.returncode == 0, done.stderr
    return {name: Ran(*told) for name, told in json.loads(done.stdout).items()}


def _main() -> None:
    from fairtrial.agents.workspace import sandbox

    top, kind = Path(sys.argv[1]), sys.argv[2]
    if kind == "root in a namespace":
        sandbox.can_change_user = lambda: False
    task = json.load(sys.stdin)
    name = f"fairtrial-{uuid4().hex}"
    with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as named, socket.socket() as server:
        abstract.bind(b"\0" + name.encode())
        (top / "out/socket").unlink(missing_ok=True)
        named.bind(str(top / "out/socket"))
        server.bind(("127.0.0.1", 0))
        for listener in (abstract, named, server):
            listener.listen()
        variables = {
            **sandbox.basic_environment(),
            "RO": str(top / "ro"),
            "OUT": str(top / "out"),
            "HOST": str(task["host"]),
            "ABSTRACT": name,
            "PORT": str(server.getsockname()[1]),
        }
        with ThreadPoolExecutor(4) as pool:
            running = {
                name: pool.submit(_one, top, command, variables, task["limits"])
                for name, command in task["commands"].items()
            }
        print(json.dumps({name: one.result() for name, one in running.items()}))


def _one(top: Path, command: list[str], variables: dict[str, str], limits: dict[str, Any]) -> tuple[int, str, str, str]:
    from fairtrial.agents.processes.supervised import supervised
    from fairtrial.agents.workspace import sandbox

    folder = Path(tempfile.mkdtemp(prefix="base-", dir=top)) / "work"
    folder.mkdir()
    confined = sandbox.Confined(folder=folder, command=command, environment=variables, read=(top / "ro",), **limits)
    enclosed = sandbox.bubblewrap(confined)
    done = subprocess.run(
        supervised(*enclosed.command),
        env=enclosed.environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=600,
    )
    return done.returncode, done.stdout, done.stderr, str(folder)


if __name__ == "__main__":
    _main()
