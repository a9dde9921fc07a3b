"""A process with everything it starts: wall time, processor time and peak memory of the whole tree."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.rivals.tool import Command

_EVERY = 0.2  # seconds between looks at the memory
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """What a process took."""

    started: float  # on the clock that all processes share
    wall: float
    cpu: float
    peak_mb: float
    code: int


class Process:
    """A running command in a session of its own, so that its children are found and end with it."""

    def __init__(self, command: Command, folder: Path, log: Path) -> None:
        self.started = time.monotonic()
        self._command = command
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command.arguments,
                cwd=folder,
                env={**os.environ, **command.variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._peak = 0
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            self._peak = max(self._peak, _memory(self._process.pid))

    @property
    def running(self) -> bool:
        """Whether it has not ended yet; its result stays for `wait`."""
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def kill(self) -> None:
        """End it and its children at once."""
        os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self, timeout: float) -> Usage:
        """Wait for the end; after `timeout` seconds it is killed."""
        deadline = time.monotonic() + timeout
        while self.running:
            if time.monotonic() > deadline:
                self.kill()
            time.sleep(0.05)
        wall = time.monotonic() - self.started
        _, status, usage = os.wait4(self._process.pid, 0)
        self._over.set()
        self._watcher.join()
        self._process.returncode = os.waitstatus_to_exitcode(status)
        peak = max(self._peak, usage.ru_maxrss * 1024) / 2**20
        return Usage(self.started, wall, usage.ru_utime + usage.ru_stime, peak, self._process.returncode)


def run(command: Command, folder: Path, log: Path, timeout: float) -> Usage:
    """Run a command to its end; another exit code than the allowed ones is an error."""
    usage = Process(command, folder, log).wait(timeout)
    if usage.code not in command.allowed:
        tail = log.read_text("utf-8", "replace")[-2000:]
        raise RuntimeError(f"{command.arguments[0]} ended with {usage.code}:\n{tail}")
    return usage


def _memory(session: int) -> int:
    """Return the bytes that all processes of a session hold in memory."""
    total = 0
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            fields = Path(entry.path, "stat").read_text("ascii", "replace").rpartition(")")[2].split()
            if int(fields[3]) == session:  # after the name: state, parent, group, session
                total += int(fields[21]) * _PAGE
        except (OSError, ValueError, IndexError):
            continue  # it has ended meanwhile
    return total
