"""`fairtrial export`."""

from __future__ import annotations

import click

from fairtrial.cli.options import open_store, option, store_option


@click.command()
@click.argument("run", default="latest")
@option("-o", "--output", "outputs", multiple=True, required=True, metavar="FILE", help="The file; may be repeated.")
@store_option
def command(run: str, outputs: tuple[str, ...], store: str | None) -> None:
    """Write RUN to a file; its name says how: .json .jsonl .csv .parquet .md .html .junit.xml."""
    from fairtrial.analyse import Run
    from fairtrial.cli.finish import check_outputs
    from fairtrial.reports.export import export

    check_outputs(outputs)
    found = Run.find(run, open_store(store))
    for output in outputs:
        click.echo(f"written: {export(found, output)}", err=True)
