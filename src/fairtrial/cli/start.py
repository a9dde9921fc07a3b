"""What commands do before their own work: open the store, set up the process."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairtrial.cli.interrupts import installed

if TYPE_CHECKING:
    from fairtrial.store import Store

T = TypeVar("T")
_OPEN_FILES = 8192


def tune_garbage_collector() -> None:
    """Collect garbage less often, which saves 5 to 10 % of CPU: a run makes many short-lived objects and few cycles.

    Done only in the command line, where the process is ours; a library must not change its host's settings.
    """
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


def raise_open_file_limit() -> None:
    """Raise the limit of open files, since every active call needs one. Also done only in the command line."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; what a user's own functions print goes to stderr, to keep stdout clean."""
    with redirect_stdout(sys.stderr), asyncio.Runner() as runner:
        loop = runner.get_loop()
        loop.set_default_executor(_Threads())
        loop.set_exception_handler(_report)
        try:
            return runner.run(_until_interrupted(work))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


async def _until_interrupted(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.current_task()
    assert task is not None
    with installed().stopping_by(task.cancel):
        return await work


class _Threads(ThreadPoolExecutor):
    """The threads of a loop, which does not wait at its end for those that hang."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=cancel_futures)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report what went wrong in the background; an interrupt is known already."""
    if not isinstance(context.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(context)


def open_store(url: str | None, *, create: bool = False) -> Store:
    """Open the store that a command works on; it is closed when the command ends."""
    from fairtrial.store import Store  # SQLAlchemy: only commands that open a store need it

    store = Store(url, create=create)
    context = click.get_current_context(silent=True)
    if context is not None:
        context.find_root().call_on_close(store.close)
    return store
