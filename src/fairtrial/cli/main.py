"""The `fairtrial` program: load each command when it is called, and turn errors into exit codes."""

from __future__ import annotations

import gc
import os
import re
import sys
from importlib import import_module
from typing import Any

import click

from fairtrial.cli.interrupts import INTERRUPTED, installed
from fairtrial.cli.options import in_store, typed_store
from fairtrial.cli.output import clean_streams
from fairtrial.core import registry
from fairtrial.core.trust import of_command

_FILES = ("running", "results", "keeping", "judging", "setup")  # of `commands/`, in the order of the list
_COMMAND = re.compile(r"`(fairtrial [^`]+)`")


def own_commands() -> dict[str, click.Command]:
    """Return the commands of the core: those typed in `commands/` that say what they do in one line."""
    return {name: command for file in _FILES for name, command in _typed_in(file).items()}


def _typed_in(file: str) -> dict[str, click.Command]:
    typed = vars(import_module(f"fairtrial.cli.commands.{file}"))
    return {name: one for name, one in typed.items() if isinstance(one, click.Command) and one.short_help}


def commands() -> dict[str, str]:
    """Return every command with what it does in one line; nothing that a command needs is imported for it."""
    own = {name: str(command.short_help) for name, command in own_commands().items()}
    others = {name: part.summary for name, part in registry.built_in("commands").items()}
    plugged = sorted(registry.plugged_parts("commands", own).items())
    return {**own, **others, **{name: command.get_short_help_str(100) for name, command in plugged}}


class _PipeClosedError(Exception):
    """The reader of our output has closed the pipe, so it has read what it wanted."""


class Commands(click.Group):
    """A click group that imports what is typed for a command on demand; `done_by` imports what the command does."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(dict.fromkeys((*own_commands(), *registry.listed("commands"))))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = next((own for file in _FILES if (own := _typed_in(file).get(cmd_name))), None)
        if own is None and cmd_name not in registry.listed("commands"):
            return None
        command: click.Command = own or registry.load("commands", cmd_name)
        command.name = cmd_name
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _PipeClosedError from None  # click would end with exit code 1
        except EOFError as ended:
            raise RuntimeError(f"a file ended too soon: {ended}") from ended  # click would say that it was interrupted
        except Exception as failure:
            error = _explained(failure)
            error.args = tuple(_in_store(part) if isinstance(part, str) else part for part in error.args)
            if error is failure:
                raise
            raise error from failure

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(commands().items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(f"unknown command `{args[0]}`{registry.nearest(args[0], self.list_commands(ctx))}")
        name, command, rest = super().resolve_command(ctx, args)
        ctx.with_resource(of_command(name or ""))
        installed().started()
        return name, command, rest


def _in_store(message: str) -> str:
    """Return a message whose commands name the store that was typed; it is known while the command's context is."""
    return _COMMAND.sub(lambda match: f"`{in_store(match[1])}`", message)


def _explained(error: Exception) -> Exception:
    """Return the error, or that the store is damaged if the error comes from that."""
    of_click = isinstance(error, click.ClickException | click.Abort | click.exceptions.Exit)
    if of_click or "fairtrial.store" not in sys.modules:  # nothing was read from a store
        return error
    from fairtrial.store.checking import damage_behind  # SQLAlchemy: `--help` does without

    return damage_behind(error, typed_store()) or error


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
    """Run a command; report every error as one sentence and an exit code."""
    code = _run(args)
    gc.freeze()  # saves 0.1 s: otherwise the interpreter searches every module for reference cycles at exit
    sys.exit(code)


def _run(args: list[str] | None) -> int:
    with clean_streams():
        return _run_command(args)


def _run_command(args: list[str] | None) -> int:
    try:
        code = cli.main(args=args, prog_name="fairtrial", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as exit_request:
        return exit_request.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except _PipeClosedError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except Exception as error:
        return _report_error(error, args)


def _report_error(error: Exception, args: list[str] | None) -> int:
    """Print an error as one sentence and return its exit code."""
    from fairtrial.core.errors import FairtrialError  # msgspec: `--help` does without

    if isinstance(error, FairtrialError):
        _print_error(str(error))
        return error.exit_code
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        hint = f"; see `{context.command_path} --help`" if context else ""
        _print_error(str(FairtrialError(error.format_message().rstrip(".") + hint)))
        return 1
    from fairtrial.core.mistakes import lacking_of, sentence_of  # only what nothing foresaw needs it

    if lacking := lacking_of(error):
        _print_error(f"{lacking}; what was stored is safe")
        return 2
    if sentence := sentence_of(error):
        _print_error(sentence)
        return 1
    if os.environ.get("FAIRTRIAL_DEBUG"):
        raise error
    from fairtrial.config.keys import hide_keys  # only a defect needs it
    from fairtrial.core.defects import defect_of  # likewise

    _print_error(defect_of(error, sys.argv if args is None else ["fairtrial", *args], hide_keys).sentence())
    return 1


def _print_error(message: str) -> None:
    lines = [line for line in message.split("\n") if line] or ["no reason given"]
    if len(lines) == 1:
        click.echo(f"error: {lines[0]}", err=True)
        return
    click.echo(f"error: {len(lines)} problems", err=True)
    for line in lines:
        click.echo(f"  {line}", err=True)
