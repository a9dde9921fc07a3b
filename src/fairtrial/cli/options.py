"""Options shared by several commands, and what was typed in them. Nothing heavy is imported: `--help` needs this file.

Every long option is also an environment variable, FAIRTRIAL_<OPTION>.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from fairtrial.cli.interrupts import installed
from fairtrial.core.looks import LOOKS, MOST_LOOKS

if TYPE_CHECKING:
    from fairtrial.analyse.run import Run

F = TypeVar("F", bound=Callable[..., Any])
_TYPED_STORE = "fairtrial.store"
ENV_ADDRESSES = "fairtrial.env_addresses"
FILE = click.Path(path_type=Path)


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """Return `click.option` with the environment variable of the option."""
    long = next(name for name in names if name.startswith("--")).split("/")[0]
    variable = "FAIRTRIAL_" + long.lstrip("-").replace("-", "_").upper()
    return click.option(*names, envvar=variable, show_envvar=False, **settings)


class Amount(click.FloatRange):
    """A number from 0 on; nothing can be compared with `nan`, and nothing reaches `inf`."""

    def __init__(self, *, positive: bool = False) -> None:
        super().__init__(min=0, min_open=positive)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


POSITIVE = Amount(positive=True)
NOT_NEGATIVE = Amount()


class Finite(click.types.FloatParamType):
    """Any number but `nan` and `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


FINITE = Finite()


class Margin(Amount):
    """A number of points above 0."""

    name = "points"

    def __init__(self) -> None:
        super().__init__(positive=True)

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
    context.meta[ENV_ADDRESSES] = value


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
budget_option = option("--budget-usd", type=NOT_NEGATIVE, help="Stop before spending more than this.")
timeout_option = option("--timeout", type=POSITIVE, help="Time limit for one request, in seconds.")


def done_by(body: str, **fixed: Any) -> Callable[[Callable[[], None]], Callable[..., Any]]:
    """Return a decorator for what is typed, options and help: the command is carried out by `body`, `module:function`.

    It takes what was typed, and `fixed`. Its module is imported when the command is called: `--help` needs none of it.
    """
    module, _, function = body.partition(":")

    def decorate(typed: Callable[[], None]) -> Callable[..., Any]:
        @wraps(typed)  # click keeps the options on the function
        def call(**values: Any) -> Any:
            with installed().starting():
                home = import_module(module)
            return getattr(home, function)(**fixed, **values)

        return call

    return decorate


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
run_options = together(  # of commands that run a suite
    option("--runs", type=click.IntRange(min=1), default=1, help="Run the suite N times in sequence, as a series."),
    option("--repeats", type=click.IntRange(min=1), help="Number of answers to every case."),
    concurrency_option,
    timeout_option,
    option("--limit", type=click.IntRange(min=1), help="Only N cases, drawn at random: the same each time."),
    option("--first", type=click.IntRange(min=1), help="Only the first N cases."),
    option(
        "--more",
        type=click.IntRange(min=1),
        metavar="N",
        help="The cases of the latest run of SUITE and N more: the next look at the same question.",
    ),
    option("--case", "cases", multiple=True, metavar="ID", help="Only this case; may be repeated."),
    option("--target", "targets", multiple=True, metavar="T", help="Only this target; may be repeated."),
    option("--condition", "conditions", multiple=True, metavar="C", help="Only this condition; may be repeated."),
    option("--benchmark-mode", is_flag=True, default=None, help="Lock temperature and penalties to 0."),
    budget_option,
    option(
        "--stop-when",
        type=click.Choice(["decided", "equivalent"]),
        help="Stop early, as soon as this is certain. The price: wider intervals, even if nothing is stopped.",
    ),
    option("--margin", type=Margin(), help="Difference that does not matter, in points; with --stop-when or --looks."),
    option(
        "--looks",
        type=click.IntRange(min=0, max=MOST_LOOKS),
        is_flag=False,
        flag_value=LOOKS,
        metavar="[N]",
        help=f"Plan N looks (default {LOOKS}), and stop at the first one that answers the question.",
    ),
    option("--race", is_flag=True, default=None, help="Ask no more of an arm that a look shows to be worse."),
    option("--gap", type=Margin(), help="Difference that looks are for, in points; stop if it cannot show any more."),
    option("--cache", is_flag=True, default=None, help="Reuse answers to the same trials from earlier runs."),
    option("--dry-run", is_flag=True, help="Show what would be run and what it may cost, and stop."),
    session_options,
)


def typed_store() -> str | None:
    """Return the store that was typed for the command that is carried out; None if there is none."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_TYPED_STORE) if context else None


def in_store(command: str) -> str:
    """Return a command to suggest, with the store that was typed for this one, if it takes a store.

    An address with a password is not repeated.
    """
    store = typed_store()
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


def metric_key(metric: str) -> str:
    """Return the internal key of a metric; the score itself has an empty key."""
    return "" if metric == "score" else metric


def from_points(value: float | None, metric: str) -> float | None:
    """Convert a score from points (0–100) to 0–1; the value of a metric stays on its own scale."""
    return value / 100 if value is not None and not metric else value


class EndingOptions:
    """What a command that runs trials does at its end: the files that it writes, and what it prints."""

    def __init__(
        self,
        *,
        outputs: Sequence[str] = (),
        as_json: bool = False,
        quiet: bool = False,
        plain: bool = False,
        show_result: Callable[[Run], bool] | None = None,
        file: str | None = None,
    ) -> None:
        """`show_result` prints what the user came for instead of the run's page, and says whether it could.

        `file` is the suite that was run, for commands to suggest.
        """
        self.outputs, self.as_json, self.quiet, self.plain = outputs, as_json, quiet, plain
        self.show_result, self.file = show_result, file
        self.started = time.monotonic()
