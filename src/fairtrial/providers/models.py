"""Models that are known: their names, prices and context windows, to choose from."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import msgspec

from fairtrial.core.providers import known_providers

_LISTED = ("openai", "anthropic", "openrouter")
_HERE = (("local:smollm2", "embedded, on this machine"), ("mock:echo", "says back what it was asked; offline"))


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model; prices are USD per million tokens, None where nobody knows."""

    name: str
    title: str
    context: int | None = None
    input_usd: float | None = None
    output_usd: float | None = None
    usable: bool = True  # whether its key is set
    variable: str = ""


def search(text: str, most: int = 20) -> list[Model]:
    """Models whose name has all these words; those that can be used now come first."""
    words = text.lower().replace(":", " ").replace("/", " ").split()
    found = [model for model in _all() if all(word in f"{model.name} {model.title}".lower() for word in words)]
    ready = {name: _key_set(name) for name in _LISTED}
    known = [msgspec.structs.replace(model, usable=ready.get(model.name.partition(":")[0], True)) for model in found]
    return sorted(known, key=lambda model: (not model.usable, len(model.name)))[:most]


def find(name: str) -> Model | None:
    """A model of exactly that name."""
    wanted = name.replace("/", ":", 1) if ":" not in name else name
    return next((model for model in _all() if model.name == wanted), None)


def _key_set(provider: str) -> bool:
    return bool(os.environ.get(_variable(provider)))


def _variable(provider: str) -> str:
    return known_providers()[provider].api_key.removeprefix("${").partition("}")[0].partition(":")[0]


@cache
def _all() -> tuple[Model, ...]:
    from genai_prices.data_snapshot import get_snapshot

    found = [Model(name=name, title=title, input_usd=0.0, output_usd=0.0) for name, title in _HERE]
    for provider in get_snapshot().providers:
        if provider.id in _LISTED:
            found += [_model(provider.id, model) for model in provider.models]
    return tuple(found)


def _model(provider: str, listed: Any) -> Model:
    prices = listed.prices[-1].prices if isinstance(listed.prices, list) else listed.prices
    return Model(
        name=f"{provider}:{listed.id}",
        title=listed.name or listed.id,
        context=listed.context_window,
        input_usd=_plain(getattr(prices, "input_mtok", None)),
        output_usd=_plain(getattr(prices, "output_mtok", None)),
        variable=_variable(provider),
    )


def _plain(price: Any) -> float | None:
    value = getattr(price, "base", price)
    return None if value is None else float(value)
