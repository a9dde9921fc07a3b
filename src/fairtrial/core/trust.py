"""Looking runs nothing: whether code of a suite's folder may run is decided by the command alone.

Commands that ask targets run what a suite names: functions, programs, repositories, addresses. All others only look,
and so does every page of the web interface until the user presses Run: they execute nothing, start no program, open no
connection and read no file outside of the suite's folder. A Python program is its author's own, so there code may run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

# They ask targets, score answers, or solve the very file that is named.
ASKING = frozenset(
    [
        "demo", "run", "resume", "retry", "rescore", "batches", "gate", "pairwise", "calibrate", "arena", "replicate",
        "optim", "baseline", "audit",
    ]
)  # fmt: skip
_process = {"may run": True}
_here: ContextVar[bool | None] = ContextVar("code may run here", default=None)
_left_out: ContextVar[dict[str, None] | None] = ContextVar("what was not run", default=None)
_boundary: ContextVar[Path | None] = ContextVar("the folder that may be read", default=None)


def may_run_code() -> bool:
    """Return whether code of a suite's folder may run here."""
    here = _here.get()
    return _process["may run"] if here is None else here


@contextmanager
def of_command(name: str) -> Iterator[None]:
    """Decide for a command, in all threads of this process; `--run-code` decides otherwise for a part of it."""
    before, _process["may run"] = _process["may run"], name in ASKING
    try:
        yield
    finally:
        _process["may run"] = before


@contextmanager
def running_code(allowed: bool = True) -> Iterator[Collection[str]]:
    """Let code run in this context, because the user asked for just that; or not. Yields what is not run for it."""
    left_out: dict[str, None] = {}
    token, noted = _here.set(allowed), _left_out.set(left_out)
    try:
        yield left_out.keys()
    finally:
        _here.reset(token)
        _left_out.reset(noted)


def leave_out(name: str) -> None:
    """Note something of the suite that is not run, fetched or unpacked by who only looks."""
    if (noted := _left_out.get()) is not None:
        noted[name] = None


@contextmanager
def looking_into(folder: Path) -> Iterator[None]:
    """Let files of a whole folder be looked at, rather than only those below a suite in it."""
    token = _boundary.set(folder)
    try:
        yield
    finally:
        _boundary.reset(token)


def within(folder: Path, name: str | Path) -> Path:
    """Return the path of a file that a suite names; raise FairtrialError if it must not be read by who only looks."""
    path = folder / name
    if may_run_code():
        return path
    roots = [root.resolve() for root in (folder, _boundary.get()) if root is not None]
    resolved = path.resolve()
    if not any(resolved.is_relative_to(root) for root in roots):
        from fairtrial.core.errors import FairtrialError  # msgspec: `fairtrial --help` does without

        raise FairtrialError(
            f"{path} is outside of the suite's folder, where only a run reads: `fairtrial validate --run-code` checks "
            "the suite as a run does"
        )
    return path
