"""Journals: what agents have done in sessions that have not ended, on disk, so that a killed run leaves it readable.

A session can take an hour, and its trace is stored with its answer. Until then a file next to the store has it,
which is written anew whenever there is something new; `fairtrial show --sessions` reads these files.
"""

from __future__ import annotations

import asyncio
import glob
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.agents.workspace.making import kept_name
from fairtrial.core.answer import Journal, SoFar, Usage
from fairtrial.core.trial import Trial
from fairtrial.core.types_in_threads import look_into
from fairtrial.engine.cancelling import raise_if_cancelled, to_the_end

_PAUSE = 0.5  # seconds between two looks at a session
_SHARE = 50  # of the time, at most one part in this many is spent on a journal


class SessionState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a session has come."""

    trial_id: str
    case_id: str
    arm: str
    repeat: int  # from 1
    process: int  # that carries it out
    started_at: float  # seconds since 1970, UTC
    updated_at: float = 0.0
    doing: str = ""
    usage: Usage | None = None
    trace: dict[str, Any] | None = None


class Journals:
    """Keeps the journals of one run in a folder; without one, none are kept."""

    def __init__(self, folder: Path | None, hide: Callable[[Any], Any]) -> None:
        self._folder, self._hide = folder, hide

    def _file(self, trial: Trial) -> Path | None:
        return self._folder / f"{kept_name(trial.case.id, trial.id)}.json" if self._folder else None

    @asynccontextmanager
    async def follow(self, trial: Trial, journal: Journal) -> AsyncIterator[None]:
        """Write down what happens in a session while the block runs; the file stays until `forget`."""
        file = self._file(trial)
        if file is None:
            yield
            return
        start = SessionState(
            trial_id=trial.id,
            case_id=trial.case.id,
            arm=trial.arm.name,
            repeat=trial.repeat + 1,
            process=os.getpid(),
            started_at=time.time(),
        )
        task = asyncio.create_task(self._write_regularly(file, start, journal))
        try:
            yield
        finally:
            await to_the_end(_stop(task))  # what the block has made was paid for

    async def _write_regularly(self, file: Path, start: SessionState, journal: Journal) -> None:
        written, pause = None, _PAUSE
        while True:
            await asyncio.sleep(pause)  # first of all: many sessions are over by then, and need no file
            begun = time.perf_counter()
            state = _state(start, journal)
            content = msgspec.json.encode(state)
            if content != written:
                stamped = msgspec.structs.replace(state, updated_at=time.time())
                await to_the_end(
                    asyncio.to_thread(self._write, file, stamped)
                )  # written late, it would outlive `forget`
                raise_if_cancelled()
                written = content
            pause = max(_PAUSE, _SHARE * (time.perf_counter() - begun))

    def _write(self, file: Path, state: SessionState) -> None:
        """Replace a file: whoever reads it finds the old state or the new one. A full disk does not end the session."""
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = file.with_suffix(".new")
            new.write_bytes(msgspec.json.encode(self._hide(msgspec.to_builtins(state))))
            new.replace(file)

    async def interrupted(self, trial: Trial) -> str:
        """Say what an earlier session was doing with this trial when it was interrupted; empty if there was none."""
        file = self._file(trial)
        state = await asyncio.to_thread(_read, file) if file else None
        return f"interrupted; {state.doing}" if state and state.doing else "interrupted" if state else ""

    async def forget(self, trial: Trial) -> None:
        """Remove the journal of a trial whose outcome is stored."""
        file = self._file(trial)
        if file is not None and file.exists():
            await asyncio.to_thread(file.unlink, missing_ok=True)


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)  # a journal that cannot be kept does not fail a trial


def _state(start: SessionState, journal: Journal) -> SessionState:
    try:
        so_far = msgspec.convert(journal.read(), SoFar)
        trace = msgspec.to_builtins(so_far.trace)  # a copy: the session goes on
    except Exception:  # a plug-in may do anything
        return start
    return msgspec.structs.replace(start, doing=so_far.doing, usage=so_far.usage, trace=trace)


def open_sessions(folder: Path) -> list[SessionState]:
    """Return the sessions of a run that have not ended: those under way, and those that were interrupted."""
    states = map(_read, sorted(folder.glob("*.json")))
    return sorted((state for state in states if state), key=lambda state: state.started_at)


def open_session(folder: Path, case_id: str, arm: str, repeat: int) -> SessionState | None:
    """Return the session of one trial, if it has not ended; repeats count from 1."""
    states = map(_read, sorted(folder.glob(f"{glob.escape(kept_name(case_id, ''))}*.json")))
    wanted = (case_id, arm, repeat)
    return next((state for state in states if state and (state.case_id, state.arm, state.repeat) == wanted), None)


def _read(file: Path) -> SessionState | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=SessionState)
    except (OSError, msgspec.DecodeError):
        return None


look_into(SessionState)
