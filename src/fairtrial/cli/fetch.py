"""`fairtrial fetch`."""

from __future__ import annotations

import click


@click.command()
@click.argument("model", default="smollm2")
def command(model: str) -> None:
    """Get the weights of the embedded MODEL (default smollm2, 98 MB) into the cache folder, once."""
    from fairtrial.providers.weights import fetch

    click.echo(fetch(model))
