"""`fairtrial report`."""

from __future__ import annotations

import click

from fairtrial.cli.options import open_store, option, store_option


@click.command()
@click.argument("run", default="latest")
@option("-o", "--output", default="report.html", show_default=True, metavar="FILE", help="The file to write.")
@store_option
def command(run: str, output: str, store: str | None) -> None:
    """Write RUN as one self-contained HTML page that opens from disk, without a network."""
    from fairtrial.analyse import Run
    from fairtrial.cli.finish import check_outputs
    from fairtrial.core.errors import FairtrialError
    from fairtrial.reports.export import export

    if not output.lower().endswith(".html"):
        raise FairtrialError(f"{output}: a report must be an .html file; `fairtrial export` writes other formats")
    check_outputs([output])
    click.echo(f"written: {export(Run.find(run, open_store(store)), output)}", err=True)
