"""What commands do before their own work: read keys, open the store, set up the process."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Coroutine
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairtrial.cli.options import ENV_ADDRESSES
from fairtrial.config.keys import env_files
from fairtrial.providers.retirement import retiring

if TYPE_CHECKING:
    from fairtrial.store import Store
    from fairtrial.store.store import RunRecord

T = TypeVar("T")


def load_dotenv(suite: str | Path | None = None) -> None:
    """Load keys from `.env` next to the suite and in this folder; variables that are already set win."""
    context = click.get_current_context(silent=True)
    confirm = bool(context and context.meta.get(ENV_ADDRESSES))
    for file in env_files(_folder_of(suite), confirm=confirm):
        file.check()
        for notice in file.notices:
            click.echo(f"note: {notice}", err=True)
        if file.refused:
            names = ", ".join(file.refused)
            click.echo(
                f"note: {names} in {file.path} ignored: a .env file can only set keys; use the environment", err=True
            )
        for name, value in file.process_values.items():
            os.environ.setdefault(name, value)


def load_dotenv_of(run: str, store: Store) -> None:
    """Load keys as for the original run: from the folder of its suite and from this folder."""
    load_dotenv(Path(store.plan(store.find_run(run).plan_id).folder))


def _folder_of(suite: str | Path | None) -> Path:
    path = Path(suite or ".")
    return path if path.is_dir() else path.parent


def tune_garbage_collector() -> None:
    """Collect garbage less often, which saves 5 to 10 % of CPU: a run makes many short-lived objects and few cycles.

    Done only in the command line, where the process is ours; a library must not change its host's settings.
    """
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


def raise_open_file_limit(limit: int = 8192) -> None:
    """Raise the limit of open files, since every active call needs one. Also done only in the command line."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
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


def say_what_ends(store: Store, record: RunRecord) -> None:
    """Say which models of a run end soon, or should have ended: it is about to ask them."""
    for known in retiring(arm.target for arm in store.arms(store.plan(record.plan_id))):
        click.echo(known.line, err=True)
