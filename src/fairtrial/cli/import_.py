"""`fairtrial import`."""

from __future__ import annotations

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
def command(tool: str, file: Path, output: Path, force: bool) -> None:
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
        imported = registry.load("importers", tool)().read(file)
    except RecursionError:
        raise FairtrialError(f"{file} is nested too deeply") from None
    written = [output.parent / name for name in imported.files]
    _refuse_existing(written, force=force)
    write_suite(imported, output, source=file.name, tool=tool)
    click.echo(f"written: {output} ({counted(len(imported.suite.get('cases', [])), 'case')})", err=True)
    for path in written:
        click.echo(f"written: {path} (code of the original)", err=True)
    for finding in imported.findings:
        click.echo(f"  not converted: {finding}", err=True)
    for difference in imported.differences:
        click.echo(f"  works differently: {difference}", err=True)
    _check(output)


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
