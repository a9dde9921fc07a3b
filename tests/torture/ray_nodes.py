"""Ray clusters on this machine whose machines lose power or freeze: every node is a process group of its own."""

from __future__ import annotations

import asyncio
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import Library

psutil = Library("psutil")
_PATIENCE = 240.0  # seconds that a node may take to start on a busy machine
_ATTEMPTS = 4
_STORE = 80_000_000  # bytes: nothing large is kept there


class Node:
    """One machine of a cluster; the first is its head."""

    def __init__(
        self, folder: Path, name: str, cpus: int, token: dict[str, str], head: str = "", port: int = 0
    ) -> None:
        self.log, self._is_head = folder / f"{name}.txt", not head
        place = ["--head", "--port", str(port or _port()), "--temp-dir", str(folder / "ray")]
        place = ["--address", head] if head else place
        place += [] if head else ["--include-dashboard", "false", "--include-log-monitor", "false"]
        common = ["--num-cpus", str(cpus), "--object-store-memory", str(_STORE), "--disable-usage-stats", "--block"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", *place, *common],
                stdout=log, stderr=log, start_new_session=True, env={**os.environ, **token, "RAY_USAGE_STATS_ENABLED": "0"},
            )  # fmt: skip

    def wait(self) -> bool:
        """Wait until it has started; return False if Ray has given up, as it does on a busy machine."""
        ends = time.monotonic() + _PATIENCE
        while "Ray runtime started" not in (said := self.log.read_text("utf-8", "replace")):
            if self._process.poll() is not None or time.monotonic() > ends:
                return False
            time.sleep(0.1)
        self.address = re.search(r"--address='([^']+)'", said)[1] if self._is_head else ""
        return True

    def processes(self, name: str = "") -> list[Any]:
        """Its processes, or those that are called like this."""
        try:
            root = psutil.Process(self._process.pid)
            mine = [*root.children(recursive=True), root]
        except psutil.NoSuchProcess:
            return []
        return [one for one in mine if name in _called(one)]

    def send(self, number: int, name: str = "") -> int:
        """Send a signal to its processes; return to how many."""
        sent = 0
        for one in self.processes(name):
            with suppress(psutil.NoSuchProcess):
                one.send_signal(number)
                sent += 1
        return sent

    def kill(self) -> None:
        """It loses power."""
        self.send(signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class RayCluster:
    """A head and other machines, with so many processors each; an asynchronous context manager."""

    def __init__(self, *cpus: int) -> None:
        try:
            import ray  # noqa: F401
        except ImportError as error:
            if os.environ.get("REQUIRE_RAY"):
                pytest.fail(str(error))
            pytest.skip(f"no Ray: {error}")
        self._cpus = cpus
        self.nodes: list[Node] = []
        # A token of its own: Ray would take one that it finds on this machine, and ask for it.
        self.token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}

    async def __aenter__(self) -> RayCluster:
        await asyncio.to_thread(self._start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._end)

    def _start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ftr", dir="/tmp"))  # short: it becomes part of a socket's name
        self.token["HOME"] = str(self.folder)  # where Ray would write a token, and does if it starts a cluster itself
        try:
            for cpus in self._cpus:
                self._add(cpus)
        except BaseException:
            self._end()
            raise

    async def start_again(self) -> None:
        """After it was killed: another cluster, at the same address."""
        port, self.nodes = int(self.address.rpartition(":")[2]), []
        for cpus in self._cpus:
            await asyncio.to_thread(self._add, cpus, port)

    def _add(self, cpus: int, port: int = 0) -> None:
        head = self.nodes[0].address if self.nodes else ""
        for attempt in range(_ATTEMPTS):
            name = f"{len(self.nodes)}-{attempt}-{'again' if port else ''}"
            node = Node(self.folder, name, cpus, self.token, head, port)
            if node.wait():
                self.nodes.append(node)
                return
            node.kill()
        raise AssertionError(node.log.read_text("utf-8", "replace"))

    def _end(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def address(self) -> str:
        return self.nodes[0].address

    def kill(self) -> None:
        """All of it loses power."""
        for node in self.nodes:
            node.kill()

    def disturb(self, chance: random.Random) -> str:
        """Do some harm; return which."""
        node, how = chance.choice(self.nodes), chance.choice(list(HARM))
        target = self.nodes[0] if how.startswith("head") else node
        number, name = HARM[how]
        target.send(number, name)
        return how


HARM = {
    "worker killed": (signal.SIGKILL, "ray::Worker"),
    "worker frozen": (signal.SIGSTOP, "ray::Worker"),
    "raylet killed": (signal.SIGKILL, "raylet/raylet"),
    "head": (signal.SIGKILL, "gcs_server"),
    "head frozen": (signal.SIGSTOP, "gcs_server"),
    "node killed": (signal.SIGKILL, ""),
    "node frozen": (signal.SIGSTOP, ""),
}


def _called(process: Any) -> str:
    try:
        return " ".join(process.cmdline()[:1])
    except psutil.Error:
        return ""


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
