"""`fairtrial import`."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.options import option


@click.command()
@click.argument("tool", metavar="TOOL")
@click.argument("file", type=click.Path(path_type=Path))
@option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("suite.yaml"), show_default=True, metavar="FILE"
)
@option("--force", is_flag=True, help="Overwrite an existing file.")
def command(tool: str, file: Path, output: Path, force: bool) -> None:
    """Convert FILE, a suite of TOOL (k-eval, benchmaker, promptfoo), to a fairtrial suite.

    Everything that has no counterpart here is listed; nothing is dropped silently.
    """
    from fairtrial.core import registry
    from fairtrial.core.errors import FairtrialError
    from fairtrial.importers import write_suite

    if output.exists() and not force:
        raise FairtrialError(f"{output} already exists; use --force to overwrite it")
    imported = registry.load("importers", tool)().read(file)
    write_suite(imported, output, source=file.name, tool=tool)
    click.echo(f"written: {output} ({len(imported.suite.get('cases', []))} cases)", err=True)
    for finding in imported.findings:
        click.echo(f"  not converted: {finding}", err=True)
    for difference in imported.differences:
        click.echo(f"  works differently: {difference}", err=True)
