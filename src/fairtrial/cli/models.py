"""`fairtrial models`."""

from __future__ import annotations

import os
from datetime import date, timedelta
from typing import Any

import click
import msgspec

from fairtrial.cli.asking import load_dotenv
from fairtrial.cli.documents import print_json
from fairtrial.cli.models_page import (
    ages,
    model_document,
    print_model,
    print_models,
    print_providers,
    print_refreshed,
    print_retiring,
)
from fairtrial.cli.start import run_coroutine
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.providers import api_providers, plain_name, split_name
from fairtrial.core.settings import target_specs
from fairtrial.providers import models
from fairtrial.providers.models import KnownModel
from fairtrial.providers.refresh import refresh
from fairtrial.providers.retirement import NOTED, Retirement, retirement, retiring, today
from fairtrial.providers.sheet import sheet_of

_RECENT = 90  # days after its end for which a model is listed that no suite names


def show_models(names: tuple[str, ...], refresh: bool, retiring: bool, within: int | None, as_json: bool) -> int:
    """Print what is known about providers and models, or refresh it."""
    if within is not None and not retiring:
        raise click.UsageError("--within needs --retiring")
    if refresh and (retiring or names):
        raise click.UsageError("use --refresh alone: it fetches everything that it can")
    if len(names) > 1 and not retiring:
        raise click.UsageError("only one provider or model at a time; with --retiring, several suites")
    load_dotenv()
    if refresh:
        return _refresh(as_json=as_json)
    if retiring:
        return _retiring(names, within, as_json=as_json)
    if not names:
        _show_providers(as_json=as_json)
    elif ":" in names[0] or "/" in names[0]:
        _show_model(names[0], as_json=as_json)
    else:
        _show_models(names[0], as_json=as_json)
    return 0


def _refresh(*, as_json: bool) -> int:
    found = run_coroutine(refresh(os.environ))
    if as_json:
        print_json({"lists": msgspec.to_builtins(found), **ages()})
    else:
        print_refreshed(found)
    return 0 if any(not one.problem for one in found) else 1


def _retiring(suites: tuple[str, ...], within: int | None, *, as_json: bool) -> int:
    days = NOTED if within is None else within
    found = _of_suites(suites, days) if suites else _of_all(days)
    if as_json:
        print_json({"within_days": days, "models": msgspec.to_builtins(found)})
    else:
        print_retiring(found, days, suites)
    return 0


def _of_suites(suites: tuple[str, ...], days: int) -> list[Retirement]:
    from fairtrial import pipeline  # the store: only suites need it

    loaded = [pipeline.load(suite, placeholders=True) for suite in suites]
    return retiring((spec for suite in loaded for spec in target_specs(suite.arms, suite.settings)), days)


def _of_all(days: int) -> list[Retirement]:
    """Return what is known about the models of vendors, without those that ended long ago."""
    names = (model.name.partition(":") for model in models.of_vendors())
    found = [known for provider, _, model in names if (known := retirement(provider, model, within=days))]
    recent = today() - timedelta(days=_RECENT)
    kept = [known for known in found if known.ends is None or known.ends >= recent]
    return sorted(kept, key=lambda known: (known.ends or known.not_before or date.max, known.model))


def _show_model(name: str, *, as_json: bool) -> None:
    provider, model = split_name(name)
    provider = _known(plain_name(provider))
    if as_json:
        print_json(model_document(provider, model))
    else:
        print_model(provider, model)


def _show_models(given: str, *, as_json: bool) -> None:
    name = _known(plain_name(given))
    found = models.of_provider(name)
    if as_json:
        print_json({"provider": name, "models": [_document(model) for model in found], **ages()})
    elif found:
        print_models(found)
    else:
        click.echo(f"No list of the models of {name}: ask for them by name, such as {name}:MODEL.")


def _known(name: str) -> str:
    """Return the name of a provider; raise an error with the nearest one if there is none."""
    if name not in api_providers():
        raise FairtrialError(f"unknown provider `{name}`{registry.nearest(name, list(api_providers()))}")
    return name


def _show_providers(*, as_json: bool) -> None:
    rows = [
        (name, provider.ready(os.environ), provider.variables, len(models.of_provider(name)), provider.local)
        for name, provider in sorted(api_providers().items())
    ]
    if as_json:
        keys = ("provider", "ready", "variables", "models", "local")
        print_json({"providers": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        print_providers(rows)


def _document(model: KnownModel) -> dict[str, Any]:
    known = sheet_of(*model.name.split(":", 1))
    ending = {name: getattr(known, name) for name in ("ends", "not_before", "successor", "served_by")}
    return {
        "model": model.name,
        "title": model.title,
        "context": model.context,
        "input_usd": model.input_usd,
        "output_usd": model.output_usd,
        "cache_read_usd": model.cache_read_usd,
        "takes": models.takes(model.name),
        **msgspec.to_builtins(ending),
    }
