"""`fairtrial fetch`."""

from __future__ import annotations

import click

from fairtrial.providers.weights import fetch


@click.command()
@click.argument("model", default="smollm2")
def command(model: str) -> None:
    """Download the weights of the embedded MODEL (default smollm2, 98 MB) to the cache folder, once."""
    click.echo(fetch(model))
