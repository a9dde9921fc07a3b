"""`fairtrial demo`."""

from __future__ import annotations

import click

from fairtrial.cli.options import json_option, output_option, quiet_option, store_option


@click.command()
@output_option
@store_option
@json_option
@quiet_option
def command(outputs: tuple[str, ...], store: str | None, as_json: bool, quiet: bool) -> int:
    """Run the built-in suite on the embedded model: no API key, and no network once the weights are downloaded."""
    from fairtrial import pipeline
    from fairtrial.cli.finish import check_outputs
    from fairtrial.cli.run import run_suite
    from fairtrial.providers.weights import fetch, weights_path
    from fairtrial.suites import suite_path

    check_outputs(outputs)
    if not weights_path("smollm2").is_file():
        click.echo("Downloading the weights of the embedded model (98 MB, once) …", err=True)
    fetch("smollm2")
    suite = pipeline.load(suite_path("demo"))
    code = run_suite(suite, runs=1, outputs=outputs, store=store, as_json=as_json, quiet=quiet)
    if not quiet and not as_json:
        click.echo(
            "\nNext: `fairtrial show --trials` shows the answers, `fairtrial init` writes a suite for you to edit."
        )
    return code
