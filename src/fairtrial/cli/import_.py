"""`fairtrial import`."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.options import option
from fairtrial.core.text import counted


class _Import(click.Command):
    """The command; `traces` as its first word is a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] == ["traces"]:
            from fairtrial.cli.import_traces import command as traces

            return traces.make_context(f"{info_name} traces", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_Import)
@click.argument("tool", metavar="TOOL")
@click.argument("file", type=click.Path(path_type=Path))
@option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("suite.yaml"), show_default=True, metavar="FILE"
)
@option("--force", is_flag=True, help="Overwrite an existing file.")
@option("--run-code", is_flag=True, help="promptfoo: run the configuration's own programs that make tests.")
def command(tool: str, file: Path, output: Path, force: bool, run_code: bool) -> None:
    """Convert FILE, a suite of TOOL (k-eval, benchmaker, promptfoo), to a fairtrial suite.

    Everything that has no counterpart here is listed; nothing is dropped silently. The suite is checked as `validate
    --no-keys` does; code of the original that it needs is written beside it.

    `fairtrial import traces FILE...` makes cases of recorded calls instead: see `fairtrial import traces --help`.
    """
    from fairtrial.core import registry
    from fairtrial.core.errors import FairtrialError
    from fairtrial.importers import write_suite

    _refuse_existing([output], force=force)
    try:
        importer = registry.load("importers", tool)()
        if run_code and not hasattr(importer, "run_code"):
            raise FairtrialError(f"--run-code is for suites with programs that make tests, which {tool} does not have")
        if run_code:
            importer.run_code = True
        imported = importer.read(file)
    except RecursionError:
        raise FairtrialError(f"{file} is nested too deeply") from None
    written = [output.parent / name for name in imported.files]
    _refuse_existing(written, force=force)
    write_suite(imported, output, source=file.name, tool=tool)
    click.echo(f"written: {output} ({counted(len(imported.suite.get('cases', [])), 'case')})", err=True)
    for path in written:
        click.echo(f"written: {path} (code of the original)", err=True)
    _list("not converted", imported.findings)
    _list("works differently", imported.differences)
    _check(output)


def _list(title: str, items: list[str]) -> None:
    """Print one line for each item; in a terminal, wrapped to its width."""
    for item in items:
        text = f"  {title}: {' '.join(item.split())}"
        if sys.stderr.isatty():
            width = max(shutil.get_terminal_size().columns, 40)
            text = textwrap.fill(text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        click.echo(text, err=True)


def _refuse_existing(paths: list[Path], *, force: bool) -> None:
    from fairtrial.core.errors import FairtrialError

    for path in paths:
        if path.exists() and not force:
            raise FairtrialError(f"{path} already exists; use --force to overwrite it")


def _check(output: Path) -> None:
    """Say what is left to do before the suite can run."""
    from fairtrial import pipeline
    from fairtrial.core.errors import FairtrialError, ProblemsError

    try:
        variables = pipeline.load(output, placeholders=True).variables
    except ProblemsError as error:
        for problem in error.problems:
            click.echo(f"  to do: {problem.message} (line {problem.line})", err=True)
    except FairtrialError as error:
        click.echo(f"  to do: {error}", err=True)
    else:
        if variables.assumed:
            click.echo(f"to run it, set {', '.join(sorted(variables.assumed))}", err=True)
