"""`fairtrial models`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import click

from fairtrial.cli.options import json_option, load_dotenv, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from fairtrial.providers.models import Model


@click.command()
@click.argument("provider", required=False)
@json_option
def command(provider: str | None, as_json: bool) -> None:
    """List the providers and their variables; with the name of a PROVIDER, its models. Prices are USD per million."""
    from fairtrial.core import registry
    from fairtrial.core.errors import FairtrialError
    from fairtrial.core.providers import api_providers, plain_name
    from fairtrial.providers import models

    load_dotenv()
    if provider is None:
        _show_providers(as_json)
        return
    name = plain_name(provider)
    if name not in api_providers():
        raise FairtrialError(f"unknown provider `{provider}`{registry.nearest(name, list(api_providers()))}")
    found = models.of_provider(name)
    if as_json:
        print_json({"provider": name, "models": [_document(model) for model in found]})
    elif found:
        _print(_table_of_models(found))
    else:
        click.echo(f"No list of the models of {name}: ask for them by name, such as {name}:MODEL.")


def _show_providers(as_json: bool) -> None:
    from fairtrial.core.providers import api_providers
    from fairtrial.providers import models

    rows = [
        (name, provider.ready(os.environ), provider.variables, len(models.of_provider(name)), provider.local)
        for name, provider in sorted(api_providers().items())
    ]
    if as_json:
        keys = ("provider", "ready", "variables", "models", "local")
        print_json({"providers": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    table = _table("provider", "", "models", "needs")
    for name, ready, _, count, local in rows:
        provider = api_providers()[name]
        needed = provider.needed or provider.signs_in or provider.addresses[:1]
        table.add_row(name, "local" if local else "ready" if ready else "", str(count or ""), " ".join(needed))
    _print(table)


def _document(model: Model) -> dict[str, object]:
    from fairtrial.providers import models

    return {
        "model": model.name,
        "title": model.title,
        "context": model.context,
        "input_usd": model.input_usd,
        "output_usd": model.output_usd,
        "cache_read_usd": model.cache_read_usd,
        "takes": models.takes(model.name),
    }


def _table_of_models(found: list[Model]) -> Table:
    from fairtrial.providers import models

    table = _table("model", "window", "in", "out", "cached", "parameters")
    for model in sorted(found, key=lambda model: model.name):
        window = f"{model.context // 1000}k" if model.context else ""
        prices = (model.input_usd, model.output_usd, model.cache_read_usd)
        name = model.name.partition(":")[2]
        table.add_row(name, window, *map(_usd, prices), models.takes(model.name))
    return table


def _usd(price: float | None) -> str:
    return "" if price is None else f"{price:g}"


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1), header_style="bold")
    for column in columns:
        numbers = column in ("window", "in", "out", "cached", "models")
        narrow = numbers or column == "model"
        justify: Literal["left", "right"] = "right" if numbers else "left"
        table.add_column(column, justify=justify, no_wrap=narrow, overflow="fold", min_width=len(column))
    return table


def _print(table: Table) -> None:
    from fairtrial.cli.console import Console

    Console(highlight=False).print(table)
