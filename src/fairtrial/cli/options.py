"""Options that several commands share. Every long option is also an environment variable, FAIRTRIAL_<OPTION>."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fairtrial.store import Store

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_ORDERS = re.compile(r"[\x7f-\x9f]|(?<=##)\[")


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """`click.option` with its environment variable."""
    long = next(name for name in names if name.startswith("--")).split("/")[0]
    variable = "FAIRTRIAL_" + long.lstrip("-").replace("-", "_").upper()
    return click.option(*names, envvar=variable, show_envvar=False, **settings)


store_option = option("--store", metavar="URL", help="The store: sqlite:///file.db or a file name.")
json_option = option("--json", "as_json", is_flag=True, help="Print exactly one JSON document.")
quiet_option = option("-q", "--quiet", is_flag=True, help="No progress, no table.")
output_option = option(
    "-o", "--output", "outputs", multiple=True, metavar="FILE", help="Write the result to a file; may be repeated."
)


def load_dotenv(suite: str | Path | None = None) -> None:
    """Take keys from `.env` beside the suite and in this folder; what the environment already says wins."""
    from fairtrial.config.keys import env_files

    for file in env_files(_folder_of(suite)):
        for notice in file.notices:
            click.echo(f"note: {notice}", err=True)
        if file.refused:
            names = ", ".join(file.refused)
            click.echo(f"note: {names} in {file.path} not taken: such a file sets keys; use the environment", err=True)
        for name, value in file.process_values.items():
            os.environ.setdefault(name, value)


def load_dotenv_of(run: str, store: Store) -> None:
    """Take keys as they were taken for a run: from where its suite is, and from this folder."""
    load_dotenv(Path(store.plan(store.find_run(run).plan_id).folder))


def _folder_of(suite: str | Path | None) -> Path:
    path = Path(suite or ".")
    return path if path.is_dir() else path.parent


def keep_collector_calm() -> None:
    """A run makes many short-lived objects and hardly a cycle: looking for cycles less often saves 5 to 10 % of CPU.

    Only here, where the process is ours; a library does not touch its host's settings.
    """
    import gc

    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


def allow_many_files(most: int = 8192) -> None:
    """Let this process open as many files as it may: every call under way takes one. Only here, too."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def work_quietly(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end with stdout kept clean: what a user's own function prints belongs on stderr."""
    import asyncio
    import sys
    from contextlib import redirect_stdout

    with redirect_stdout(sys.stderr):
        return asyncio.run(work)


def open_store(url: str | None, *, create: bool = False) -> Store:
    """The store that a command works on."""
    from fairtrial.store import Store

    return Store(url, create=create)


def print_json(value: dict[str, Any]) -> None:
    """The one JSON document on stdout, with the version of its shape."""
    from fairtrial.reports import SCHEMA_VERSION

    print_plain_json({"schema_version": SCHEMA_VERSION, **value})


def print_plain_json(value: Any) -> None:
    """JSON of somebody else's shape."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    # Escaped, what a terminal or a CI server would take for orders is the same JSON still.
    click.echo(_ORDERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def score_named(metric: str) -> str:
    """A metric by its name; `score` is the score itself."""
    return "" if metric == "score" else metric


def own_scale(value: float | None, metric: str) -> float | None:
    """What is said of the score is in points of 100, of a metric on its own scale."""
    return value / 100 if value is not None and not metric else value
