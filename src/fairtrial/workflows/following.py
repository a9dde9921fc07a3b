"""Progress of a run in Python: one line that updates in a notebook or terminal, and nothing anywhere else."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fairtrial.engine.progress import Progress
from fairtrial.engine.watching import Session, Watch
from fairtrial.text.printable import counted

_REFRESH = 0.3
Part = tuple[int, int]
Show = Callable[[str], None]


def follower(part: Part | None = None, *, show: bool | None = None) -> Watch | None:
    """Return a watch that shows one line; None where it would not be seen, unless `show` asks for it."""
    writer = None if show is False else _notebook_writer() or _terminal_writer(always=bool(show))
    if writer is None:
        return None
    write = writer

    @asynccontextmanager
    async def watch(session: Session) -> AsyncIterator[None]:
        line = asyncio.create_task(_keep_showing(session.progress, part, write))
        try:
            yield
        finally:
            line.cancel()
            await asyncio.gather(line, return_exceptions=True)
            write("")

    return watch


async def _keep_showing(progress: Progress, part: Part | None, write: Show) -> None:
    while True:
        write(progress_text(progress, part))
        await asyncio.sleep(_REFRESH)


def progress_text(progress: Progress, part: Part | None = None) -> str:
    """Return the state of a run as one line."""
    which = f"run {part[0]} of {part[1]}: " if part else ""
    failed = sum(arm.failed + arm.unscored for arm in progress.arms)
    left = progress.seconds_left
    ending = f", about {left:.0f} s left" if left is not None and progress.done < progress.total else ""
    return (
        f"{which}{progress.done} of {counted(progress.total, 'trial')}"
        + (f", {failed} failed" if failed else "")
        + ending
    )


def _notebook_writer() -> Show | None:
    """Return what shows a line in a notebook; None if this is not one. IPython is never imported for this."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    output: Any = importlib.import_module("IPython.display")

    handle: Any = None

    def write(text: str) -> None:
        nonlocal handle
        content = {"text/plain": text, "text/html": f"<pre>{text}</pre>" if text else ""}
        if handle is None:
            handle = output.display(content, raw=True, display_id=True)
        else:
            handle.update(content, raw=True)

    return write


def _terminal_writer(*, always: bool) -> Show | None:
    if not (always or sys.stderr.isatty()):
        return None

    def write(text: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()

    return write
