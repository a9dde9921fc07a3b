"""`fairtrial export`."""

from __future__ import annotations

import click

from fairtrial.cli.options import open_store, option, store_option
from fairtrial.reports.formats import ENDINGS

_HELP = f"The file to write, ending in one of {' '.join(ENDINGS)}; may be repeated."


@click.command()
@click.argument("run", default="latest")
@option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    required=True,
    metavar="FILE",
    help=_HELP,
)
@store_option
def command(run: str, outputs: tuple[str, ...], store: str | None) -> None:
    """Write RUN to a file; the file's extension decides the format."""
    from fairtrial.analyse import Run
    from fairtrial.cli.finish import check_outputs
    from fairtrial.reports.export import export

    check_outputs(outputs)
    stored_run = Run.find(run, open_store(store))
    for output in outputs:
        click.echo(f"written: {export(stored_run, output)}", err=True)
