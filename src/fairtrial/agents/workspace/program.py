"""Running a program that a model wrote: in bubblewrap, or only in a process of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from fairtrial.agents.processes.process import run
from fairtrial.agents.processes.supervised import private_temp_folder
from fairtrial.agents.workspace.sandbox import Confined, basic_environment, bubblewrap, sandbox_problem
from fairtrial.core.workspace import WorkspaceSpec

Sandbox = Literal["bubblewrap", "none"]
UNPROTECTED = (
    "without a sandbox, code that models write runs with your rights: it can read and change your files and use the "
    "network; only its time and memory are limited"
)
_MAX_RESULT = 10 * 2**20  # bytes
_PATIENCE = 10  # real seconds for each second of processor time: other programs need the processor too
_PROCESSES = 256  # threads of solvers count as well
_OVERHEAD_MB = 512  # of the processes around the program
_DISK_MB = 1024
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What a program returned, as its runner wrote it down, and the last lines that it printed."""

    result: dict[str, Any]
    output: str


@lru_cache
def missing_sandbox(sandbox: Sandbox) -> str:
    """Return why programs cannot be run; empty if they can."""
    if sys.platform == "win32":
        return "answers that are code cannot be run on Windows"
    reason = sandbox_problem(WorkspaceSpec(sandbox=sandbox))
    if not reason:
        return ""
    return f"answers that are code need a sandbox, and {reason}. `sandbox: none` does without, but {UNPROTECTED}"


async def run_program(
    program: str,
    runner: Path,
    sandbox: Sandbox,
    *,
    seconds: float,
    memory_mb: float,
    task: Mapping[str, Any],
    files: Mapping[str, bytes] | None = None,
    read: tuple[Path, ...] = (),
) -> Ran:
    """Run a program to its end under its limits, and return what came of it.

    Args:
        runner: The script that runs it and writes the result; it gets the task as a file.
        files: What else is in the program's folder.
        read: What else may be read, such as modules of the runner.

    Raises TimeoutError if it has not ended after ten times its processor time, for which a busy machine may be the
    reason as well as the program.
    """
    base = await asyncio.to_thread(private_temp_folder, "fairtrial-programs")
    folder = base / "work"
    try:
        whole = {
            "program": str(folder / "answer.py"),
            "result": str(folder / "result.json"),
            "seconds": seconds,
            "memory_mb": memory_mb,
            **task,
        }
        folder.mkdir()
        for name, body in (files or {}).items():
            (folder / Path(name).name).write_bytes(body)
        (folder / "answer.py").write_text(program, "utf-8", errors="replace")
        (folder / "task.json").write_bytes(msgspec.json.encode(whole))
        command = [sys.executable, "-I", str(runner), str(folder / "task.json")]
        environment = {**basic_environment(), **dict.fromkeys(_THREADS, "1"), "PYTHONDONTWRITEBYTECODE": "1"}
        if sandbox == "bubblewrap":
            confined = Confined(
                folder=folder,
                command=command,
                environment=environment,
                read=(runner, *read),
                processes=_PROCESSES,
                memory_mb=memory_mb + _OVERHEAD_MB,
                disk_mb=_DISK_MB,
            )
            enclosed = bubblewrap(confined)
            command, environment = enclosed.command, enclosed.environment
        else:
            environment |= {"HOME": str(folder), "TMPDIR": str(folder)}
        ended = await run(command, folder, environment, _PATIENCE * seconds + 60)
        result = await asyncio.to_thread(_read, folder / "result.json", ended.errors)
        return Ran(result=result, output=ended.output)
    finally:
        await asyncio.to_thread(shutil.rmtree, base, ignore_errors=True)


def _read(path: Path, errors: str) -> dict[str, Any]:
    """Return what the runner wrote; the program can write there too, so that anything may be in it."""
    try:
        content = _content(path)
        if len(content) > _MAX_RESULT:
            return {"error": "no_result", "message": "it returned more than 10 MB"}
        result = msgspec.json.decode(content)
    except (OSError, msgspec.DecodeError, RecursionError):
        last = errors.rpartition("\n")[2].strip()
        return {"error": "no_result", "message": last or "nothing was returned"}
    return result if isinstance(result, dict) else {"error": "no_result", "message": "nothing was returned"}


def _content(path: Path) -> bytes:
    """Return a file's content, or its beginning if it is too long; of a link, a pipe or a folder nothing is read."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return os.read(handle, _MAX_RESULT + 1) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    finally:
        os.close(handle)
