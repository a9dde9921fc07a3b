"""Have model files read in a process of our own (`model_process`): HiGHS never comes back from some mistakes in them.

The process is kept for the next file, and ends with us.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.tracks.optimisation.problem import OptimisationProblem

SECONDS = 30.0  # that a file may take,
_MB_IN_A_SECOND = 0.5  # and what is granted for a large one
_START_SECONDS = 120.0  # to import what it needs: a busy machine may take long
LENGTH = 8  # bytes before each reply
READY = b"ready".rjust(LENGTH)
_BOOT = (
    "import sys, json; sys.path += [p for p in json.loads(sys.argv.pop()) if p not in sys.path]; "
    "from fairtrial.tracks.optimisation.model_process import main; main()"
)


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a file: a problem, or what is wrong with it."""

    problem: OptimisationProblem | None = None
    wrong: str = ""


class _NoReplyError(Exception):
    """The process has ended, or does not answer."""


class _Reader:
    """The process, which is started when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def read(self, path: Path, seconds: float) -> Reply:
        """Return what came of a file; raise _NoReplyError if nothing came of it in time."""
        with self._lock:
            try:
                process = self._running() or self._start()
                assert process.stdin is not None
                process.stdin.write(json.dumps([os.fspath(Path.cwd()), os.fspath(path), seconds]).encode() + b"\n")
                process.stdin.flush()
                with _killed_after(seconds, process):
                    length = int.from_bytes(_bytes(process, LENGTH), "big")
                    return msgspec.msgpack.decode(_bytes(process, length), type=Reply)
            except BaseException:
                self._end()
                raise

    def _running(self) -> subprocess.Popen[bytes] | None:
        """Return the process if it still runs."""
        if self._process is not None and self._process.poll() is not None:
            self._end()
        return self._process

    def _start(self) -> subprocess.Popen[bytes]:
        path = json.dumps([str(Path(folder).absolute()) for folder in sys.path if folder])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us, and we end it
        )
        with _killed_after(_START_SECONDS, self._process):
            _bytes(self._process, len(READY))
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process:
                pass


@contextmanager
def _killed_after(seconds: float, process: subprocess.Popen[bytes]) -> Iterator[None]:
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _bytes(process: subprocess.Popen[bytes], count: int) -> bytes:
    assert process.stdout is not None
    found = process.stdout.read(count)
    if len(found) < count:
        raise _NoReplyError
    return found


_readers: dict[int, _Reader] = {}  # by the process that has started it: a fork is not to talk to its parent's


def read_apart(path: Path) -> OptimisationProblem:
    """Return the problem in a model file."""
    seconds = SECONDS + path.stat().st_size / 1e6 / _MB_IN_A_SECOND
    try:
        reply = _readers.setdefault(os.getpid(), _Reader()).read(path, seconds)
    except (_NoReplyError, BrokenPipeError):
        raise FairtrialError(
            f"{path} cannot be read: HiGHS crashes on it, or does not come to an end; check it line by line"
        ) from None
    if reply.problem is None:
        raise FairtrialError(reply.wrong)
    return reply.problem
