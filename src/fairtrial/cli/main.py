"""`fairtrial`: the commands, loaded when they are called, and the one place where errors become exit codes."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

from fairtrial.cli.output import clean_streams

# One line each, here and nowhere else: listing the commands must not import them.
COMMANDS = {
    "demo": "Try the built-in suite on the embedded model: no key, no network.",
    "init": "Write a commented suite that runs as it is.",
    "validate": "Check everything that can be known before spending anything.",
    "run": "Run a suite.",
    "resume": "Go on with a run that was stopped.",
    "retry": "Try the failed trials of a run again.",
    "rescore": "Score the stored answers of a run anew.",
    "list": "List the runs in the store.",
    "show": "Show a run, or one of its trials.",
    "compare": "Say which of two is better, or that nobody can tell yet.",
    "rank": "Rank arms, with the ranks that are left open.",
    "cases": "Say which cases are hard, dead or probably wrong, and how many would do.",
    "power": "Say how many cases it takes to see a difference.",
    "variance": "Say where the uncertainty comes from, and what would lower it.",
    "gate": "Pass or fail a run, for CI.",
    "report": "Write a run as one HTML page that needs nothing else.",
    "export": "Write a run to a file: HTML, Markdown, JSON, CSV, Parquet, JUnit and others.",
    "tag": "Name a run, for wherever a run id is asked for.",
    "delete": "Delete runs from the store.",
    "store": "Look after the store: see whether it is whole.",
    "pairwise": "Let a judge compare stored answers, two at a time, in both orders.",
    "calibrate": "See how far a judge can be trusted.",
    "label": "Let people mark answers, and correct a judge's scores by their marks.",
    "arena": "Let models write web pages, and see them in a real browser.",
    "vote": "Choose between answers without knowing whose they are.",
    "serve": "Serve the web page: suites, runs, comparisons, judges, votes.",
    "optim": "Compare prompt styles on optimisation problems.",
    "baseline": "Solve an optimisation problem, with a certificate.",
    "import": "Turn a suite of another tool into one of ours.",
    "scorers": "List the scorers and what each is good for.",
    "fetch": "Get the weights of the embedded model.",
    "doctor": "See what is installed, reachable and configured.",
}
EXIT_INTERRUPTED = 130


class Commands(click.Group):
    """Commands by name, each in a module of its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if cmd_name in ("import",) else cmd_name
        command: click.Command = import_module(f"fairtrial.cli.{name}").command
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from fairtrial.core.registry import nearest

            raise click.UsageError(f"there is no command `{args[0]}`{nearest(args[0], list(COMMANDS))}")
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, _: Any, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"fairtrial {version('fairtrial')}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def cli() -> None:
    """A fair trial for every model, agent and prompt: the same cases, stated conditions, honest error bars."""


def main(args: list[str] | None = None) -> None:
    """Run a command; every error is one sentence and an exit code."""
    code = _run(args)
    gc.freeze()  # else the interpreter looks for cycles in every module before it goes: 0.1 s for nothing
    sys.exit(code)


def _run(args: list[str] | None) -> int:
    with clean_streams():
        return _run_command(args)


def _run_command(args: list[str] | None) -> int:
    try:
        code = cli.main(args=args, prog_name="fairtrial", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except BrokenPipeError:
        # Whoever read our output has gone; what they wanted to see they have seen.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except Exception as error:
        return _explain(error)


def _explain(error: Exception) -> int:
    """Say in one sentence what is wrong, and return the exit code."""
    from fairtrial.core.errors import FairtrialError

    if isinstance(error, FairtrialError):
        _say(str(error))
        return error.exit_code
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        hint = f"; see `{context.command_path} --help`" if context else ""
        _say(error.format_message().rstrip(".") + hint)
        return 1
    if os.environ.get("FAIRTRIAL_DEBUG"):
        raise error
    from fairtrial.core.variables import Variables

    what = Variables(os.environ).hide(f"{type(error).__name__}: {error}")
    _say(f"fairtrial itself has gone wrong: {what} (FAIRTRIAL_DEBUG=1 shows where; please report it)")
    return 1


def _say(message: str) -> None:
    lines = [line for line in message.split("\n") if line] or ["no reason given"]
    if len(lines) == 1:
        click.echo(f"error: {lines[0]}", err=True)
        return
    click.echo(f"error: {len(lines)} problems", err=True)
    for line in lines:
        click.echo(f"  {line}", err=True)
