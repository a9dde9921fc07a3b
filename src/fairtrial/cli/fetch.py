"""`fairtrial fetch`."""

from __future__ import annotations

import click

from fairtrial.providers.weights import fetch


def fetch_weights(model: str) -> None:
    """Download the weights of the embedded model."""
    click.echo(fetch(model))
