"""What commands do before their own work: open the store, set up the process."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Coroutine
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, TypeVar

import click

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
    with redirect_stdout(sys.stderr):
        return asyncio.run(work)


def open_store(url: str | None, *, create: bool = False) -> Store:
    """Open the store that a command works on; it is closed when the command ends."""
    from fairtrial.store import Store  # SQLAlchemy: only commands that open a store need it

    store = Store(url, create=create)
    context = click.get_current_context(silent=True)
    if context is not None:
        context.find_root().call_on_close(store.close)
    return store
