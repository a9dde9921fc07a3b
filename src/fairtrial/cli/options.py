"""Options shared by several commands. Every long option is also an environment variable, FAIRTRIAL_<OPTION>."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from fairtrial.reports import SCHEMA_VERSION

if TYPE_CHECKING:
    from fairtrial.store import Store
    from fairtrial.store.store import RunRecord

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_TYPED_STORE = "fairtrial.store"
_ENV_ADDRESSES = "fairtrial.env_addresses"
_CONTROL_CODES = re.compile(r"[\x7f-\x9f]|(?<=##)\[")


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """Return `click.option` with the environment variable of the option."""
    long = next(name for name in names if name.startswith("--")).split("/")[0]
    variable = "FAIRTRIAL_" + long.lstrip("-").replace("-", "_").upper()
    return click.option(*names, envvar=variable, show_envvar=False, **settings)


class Margin(click.FloatRange):
    """A number of points above 0."""

    name = "points"

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            reason = "a margin is a number of points above 0, such as 2; leave the option out to have none"
            self.fail(f"{value!r}: {reason}", param, ctx)


def _note_store(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Note a store that was typed: the commands that this one suggests need it too."""
    if context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE:
        context.meta[_TYPED_STORE] = value
    return value


def _note_addresses(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    context.meta[_ENV_ADDRESSES] = value


env_addresses_option = option(
    "--env-addresses",
    is_flag=True,
    expose_value=False,
    callback=_note_addresses,
    help="Accept the addresses that .env files set for providers, from now on.",
)
store_option = option(
    "--store", metavar="URL", help="The store: a file name, sqlite:///… or postgresql://…", callback=_note_store
)
json_option = option("--json", "as_json", is_flag=True, help="Print exactly one JSON document.")
quiet_option = option("-q", "--quiet", is_flag=True, help="Print no progress and no table.")
plain_option = option("--plain", is_flag=True, help="Draw no bars.")
engine_option = option(
    "--engine",
    metavar="ENGINE",
    default="local",
    help="Where trials are carried out: local, ray, or ray:ADDRESS for a cluster.",
)
workers_option = option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Carry trials out in N processes, for scorers that keep a processor busy; on a cluster, at most N.",
)
output_option = option(
    "-o", "--output", "outputs", multiple=True, metavar="FILE", help="Write the result to a file; may be repeated."
)

concurrency_option = option("--concurrency", type=click.IntRange(min=1), help="Calls at the same time.")
budget_option = option("--budget-usd", type=click.FloatRange(min=0), help="Stop before spending more than this.")


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return several options as one, in this order."""

    def add(command: F) -> F:
        for one in reversed(options):
            command = one(command)
        return command

    return add


store_options = together(store_option, json_option)  # of commands that read the store
asking_options = together(env_addresses_option, store_options)  # and of those that ask models too
session_options = together(  # of commands that carry out trials
    engine_option, workers_option, output_option, asking_options, quiet_option, plain_option
)


def load_dotenv(suite: str | Path | None = None) -> None:
    """Load keys from `.env` next to the suite and in this folder; variables that are already set win."""
    from fairtrial.config.keys import env_files  # only commands that ask models need it

    context = click.get_current_context(silent=True)
    confirm = bool(context and context.meta.get(_ENV_ADDRESSES))
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
    import gc

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
    import asyncio
    import sys
    from contextlib import redirect_stdout

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
    from fairtrial.providers.retirement import retiring  # only runs need it

    for known in retiring(arm.target for arm in store.arms(store.plan(record.plan_id))):
        click.echo(known.line, err=True)


def in_store(command: str) -> str:
    """Return a command to suggest, with the store that was typed for this one, if it takes a store.

    An address with a password is not repeated.
    """
    context = click.get_current_context(silent=True)
    store = context.meta.get(_TYPED_STORE) if context else None
    if store is None or "--store" in command or not _takes_store(command):
        return command
    return f"{command} --store {_repeated(store)}"


def runs_in_command(runs: Iterable[str]) -> str:
    """Return runs as they were typed (RUN, or RUN@STORE), for a command to suggest; each with a space before it."""
    parts = (run.partition("@") for run in runs)
    return "".join(f" {quote(name)}{at}{_repeated(other) if at else ''}" for name, at, other in parts)


def run_in_command(run: str, *words: str) -> str:
    """Return a run as it was typed, and words after it, for a command to suggest that takes no RUN@STORE."""
    name, at, other = run.partition("@")
    return " ".join([*map(quote, (name or "latest", *words)), *(["--store", _repeated(other)] if at else [])])


def _repeated(store: str) -> str:
    return "URL" if "://" in store and "@" in store else quote(store)


def _takes_store(command: str) -> bool:
    found: click.Command = click.get_current_context().find_root().command
    for word in command.split()[1:]:
        if not isinstance(found, click.Group):
            break
        found = found.get_command(click.Context(found), word) or found
    return any(parameter.name == "store" for parameter in found.params)


def print_json(value: dict[str, Any]) -> None:
    """Print the command's one JSON document, with its schema version."""
    print_plain_json({"schema_version": SCHEMA_VERSION, **value})


def print_json_with_list(value: dict[str, Any], name: str, items: Iterable[Any]) -> None:
    """Print the command's one JSON document with a list at its end, item by item: it may be long."""
    import msgspec

    head = msgspec.json.format(msgspec.json.encode({"schema_version": SCHEMA_VERSION, **value}), indent=2).decode()
    click.echo(f'{harmless(head.removesuffix("}").rstrip())},\n  "{name}": [', nl=False)
    for number, item in enumerate(items):
        click.echo(("," if number else "") + "\n    " + harmless(msgspec.json.encode(item).decode()), nl=False)
    click.echo("\n  ]\n}")


def print_plain_json(value: Any) -> None:
    """Print JSON whose format is defined elsewhere, so without our schema version."""
    import msgspec

    click.echo(harmless(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def harmless(text: str) -> str:
    """Escape what a terminal or CI server would take for commands; the JSON means the same."""
    return _CONTROL_CODES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def metric_key(metric: str) -> str:
    """Return the internal key of a metric; the score itself has an empty key."""
    return "" if metric == "score" else metric


def from_points(value: float | None, metric: str) -> float | None:
    """Convert a score from points (0–100) to 0–1; the value of a metric stays on its own scale."""
    return value / 100 if value is not None and not metric else value
