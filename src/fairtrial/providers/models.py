"""A searchable list of known models with their prices and context windows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Set
from functools import cache
from typing import Any

import msgspec

from fairtrial.core.experiment import TargetSpec
from fairtrial.core.providers import Provider, api_providers
from fairtrial.providers import price_list
from fairtrial.providers.params import unsupported_params
from fairtrial.providers.sheet import Sheet, maker_of, refreshed_layers, sheet_of

_VENDORS = ("openai", "anthropic", "google", "mistral", "xai", "deepseek")  # who make models come before who serve them
_NOT_LISTED = ("openai-responses", "huggingface", "ollama")  # models of others, or of your own machine
_OFFLINE = (("local:smollm2", "embedded, on this machine"), ("mock:echo", "repeats the prompt; offline"))


class KnownModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model; prices are USD per million tokens, or None if unknown."""

    name: str
    title: str
    context: int | None = None
    input_usd: float | None = None
    output_usd: float | None = None
    cache_read_usd: float | None = None
    usable: bool = True  # whether its key is set
    variable: str = ""


def search(text: str, most: int = 20) -> list[KnownModel]:
    """Return models whose name contains all these words, those that are usable now first."""
    words = text.lower().replace(":", " ").replace("/", " ").split()
    matches = [model for model in _all_models() if all(word in f"{model.name} {model.title}".lower() for word in words)]
    ready = {name: provider.ready(os.environ) for name, provider in listed_providers().items()}
    models = [msgspec.structs.replace(model, usable=ready.get(model.name.partition(":")[0], True)) for model in matches]
    return sorted(models, key=lambda model: (not model.usable, len(model.name)))[:most]


def find(name: str) -> KnownModel | None:
    """Return the model with exactly this name."""
    wanted = name.replace("/", ":", 1) if ":" not in name else name
    return next((model for model in _all_models() if model.name == wanted), None)


def with_provider(model: str) -> str | None:
    """Return the full name of a model that was written without its provider: `openai:gpt-4o` for `gpt-4o`."""
    names = (known.name for known in _all_models())
    exact = next((name for name in names if name.partition(":")[2] == model), None)
    maker = maker_of(model)
    return exact or (f"{maker}:{model}" if maker in _VENDORS else None)


def of_provider(name: str) -> list[KnownModel]:
    """Return the known models of one provider."""
    name = "openai" if name == "openai-responses" else name
    return [model for model in _all_models() if model.name.partition(":")[0] == name]


def of_vendors() -> list[KnownModel]:
    """Return the known models at those who make them."""
    return [model for model in _all_models() if maker_of(model.name.partition(":")[2]) == model.name.partition(":")[0]]


def listed_providers() -> dict[str, Provider]:
    """Return the providers whose models and prices are known, vendors first."""
    known = {name: provider for name, provider in api_providers().items() if name not in _NOT_LISTED}
    return {name: known[name] for name in (*_VENDORS, *(name for name in known if name not in _VENDORS))}


def takes(name: str) -> str:
    """Return what is special about a model, in words: when it ends, and its parameters."""
    provider, _, model = name.partition(":")
    known = sheet_of(provider, model)
    words = [end] if (end := _end(known)) else []
    words += [f"reasoning {known.reasoning.in_words()}"] if known.reasoning else []
    row = api_providers().get(provider)
    if row is not None:
        spec = TargetSpec(id=name, kind=row.kind, provider=provider, model=model)
        refused = unsupported_params(spec, {"temperature": 0.5, "top_p": 0.5, "seed": 1, "stop": ["x"]})
        words += [f"no {', '.join(refused)}"] if refused else []
    return "; ".join(words)


def _end(known: Sheet) -> str:
    words = f"ends {known.ends}" if known.ends else f"ends {known.not_before} or later" if known.not_before else ""
    words += f" → {known.successor}" if words and known.successor else ""
    return f"served by {known.served_by}" if known.served_by and not words else words


@cache
def _all_models() -> tuple[KnownModel, ...]:
    models = [KnownModel(name=name, title=title, input_usd=0.0, output_usd=0.0) for name, title in _OFFLINE]
    listed = {provider.id: provider.models for provider in price_list.price_list().providers}
    for name, provider in listed_providers().items():
        own = [_model(name, provider, model) for model in listed.get(provider.prices or name, ())]
        models += [*own, *_fetched(name, provider, {model.name for model in own})]
    return tuple(models)


def _fetched(name: str, provider: Provider, listed: Set[str]) -> Iterator[KnownModel]:
    """Yield the models in a provider's own list that the price list does not have yet."""
    for layer in refreshed_layers():
        for row in layer.rows.models if not layer.rows.public and layer.file == name else ():
            full = f"{name}:{row.get('name')}"
            if "name" in row and maker_of(row["name"]) and full not in listed:
                known = sheet_of(name, row["name"])
                yield KnownModel(name=full, title=row["name"], context=known.context, variable=provider.variable)


def _model(name: str, provider: Provider, listed: Any) -> KnownModel:
    prices = listed.prices[-1].prices if isinstance(listed.prices, list) else listed.prices
    return KnownModel(
        name=f"{name}:{listed.id.replace('regional.', 'us.', 1)}",  # Bedrock has the same prices in every region
        title=listed.name or listed.id,
        context=listed.context_window,
        input_usd=_base_price(getattr(prices, "input_mtok", None)),
        output_usd=_base_price(getattr(prices, "output_mtok", None)),
        cache_read_usd=_base_price(getattr(prices, "cache_read_mtok", None)),
        variable=provider.variable,
    )


def _base_price(price: Any) -> float | None:
    value = getattr(price, "base", price)
    return None if value is None else float(value)


def forget() -> None:
    """Read the list of models and prices anew: its file has changed."""
    price_list.forget()
    _all_models.cache_clear()
