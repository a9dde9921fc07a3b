"""How a process is hit: killed, asked to end, frozen for a while, or left without a process that works for it."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from fairtrial.store.checking import check_file
from tests.lazily import Library

psutil = Library("psutil")
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "interrupt": signal.SIGINT}
KINDS = ("kill", "kill", "term", "interrupt", "freeze", "helper")
PATIENCE = 240.0  # seconds after which a process hangs


class Ended(NamedTuple):
    """How a process ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err


async def end_of(process: Any) -> Ended:
    """Wait for the end of a process; one that hangs is killed and fails the test."""
    ending = asyncio.ensure_future(asyncio.to_thread(process.communicate))
    done, _ = await asyncio.wait([ending], timeout=PATIENCE)
    if not done:
        process.kill()
        out, err = await ending
        raise AssertionError(f"a process hung for {PATIENCE:g} s: {(out + err).decode()}")
    out, err = ending.result()
    return Ended(process.returncode, out.decode(), err.decode())


async def until(condition: Callable[[], bool], process: Any) -> None:
    """Wait for something that a process does, or for its end."""
    while process.poll() is None and not condition():
        await asyncio.sleep(0.003)


async def strike(process: Any, kind: str, chance: random.Random) -> bool:
    """Hit a process; return whether it was there."""
    await asyncio.sleep(0.03 * chance.random())
    if process.poll() is not None:
        return False
    if kind == "freeze":
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(0.2 * chance.random())
        process.send_signal(signal.SIGCONT)
    elif kind == "helper":
        return _kill_a_helper(process, chance)
    else:
        with suppress(ProcessLookupError):
            process.send_signal(SIGNALS[kind])
    return True


def _kill_a_helper(process: Any, chance: random.Random) -> bool:
    """Kill a process that works for this one, if there is any."""
    with suppress(psutil.NoSuchProcess):
        helpers = psutil.Process(process.pid).children(recursive=True)
        if helpers:
            chance.choice(helpers).kill()
            return True
    return False


def without_complaint(ended: Ended, *codes: int) -> Ended:
    """Check that a process that was hit said nothing that only we understand, and ended as it should."""
    assert "Traceback" not in ended.said and "internal error" not in ended.said, ended
    assert ended.code in (*codes, 0, 2, 100, 101, 130, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT), ended
    return ended


def whole_store(path: Path) -> None:
    """Check a store as `fairtrial store check` does, if it has been made."""
    if path.exists() and path.stat().st_size:
        with closing(sqlite3.connect(path)) as connection:
            made = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
        assert not made or check_file(path).whole
