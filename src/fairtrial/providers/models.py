"""A searchable list of known models with their prices and context windows."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

import msgspec

from fairtrial.core.providers import known_providers

_LISTED_PROVIDERS = ("openai", "anthropic", "openrouter")
_FAMILIES = (
    (re.compile(r"(gpt|chatgpt)-|o\d"), "openai"),
    (re.compile(r"claude-\w*-?\d"), "anthropic"),
)  # by their names
_OFFLINE = (("local:smollm2", "embedded, on this machine"), ("mock:echo", "repeats the prompt; offline"))


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model; prices are USD per million tokens, or None if unknown."""

    name: str
    title: str
    context: int | None = None
    input_usd: float | None = None
    output_usd: float | None = None
    usable: bool = True  # whether its key is set
    variable: str = ""


def search(text: str, most: int = 20) -> list[Model]:
    """Return models whose name contains all these words, those that are usable now first."""
    words = text.lower().replace(":", " ").replace("/", " ").split()
    matches = [model for model in _all_models() if all(word in f"{model.name} {model.title}".lower() for word in words)]
    ready = {name: _key_set(name) for name in _LISTED_PROVIDERS}
    models = [msgspec.structs.replace(model, usable=ready.get(model.name.partition(":")[0], True)) for model in matches]
    return sorted(models, key=lambda model: (not model.usable, len(model.name)))[:most]


def find(name: str) -> Model | None:
    """Return the model with exactly this name."""
    wanted = name.replace("/", ":", 1) if ":" not in name else name
    return next((model for model in _all_models() if model.name == wanted), None)


def with_provider(model: str) -> str | None:
    """Return the full name of a model that was written without its provider: `openai:gpt-4o` for `gpt-4o`."""
    names = (known.name for known in _all_models())
    exact = next((name for name in names if name.partition(":")[2] == model), None)
    family = next((provider for pattern, provider in _FAMILIES if pattern.match(model)), None)
    return exact or (f"{family}:{model}" if family else None)


def _key_set(provider: str) -> bool:
    return bool(os.environ.get(_key_variable(provider)))


def _key_variable(provider: str) -> str:
    return known_providers()[provider].api_key.removeprefix("${").partition("}")[0].partition(":")[0]


@cache
def _all_models() -> tuple[Model, ...]:
    from genai_prices.data_snapshot import get_snapshot

    models = [Model(name=name, title=title, input_usd=0.0, output_usd=0.0) for name, title in _OFFLINE]
    for provider in get_snapshot().providers:
        if provider.id in _LISTED_PROVIDERS:
            models += [_model(provider.id, model) for model in provider.models]
    return tuple(models)


def _model(provider: str, listed: Any) -> Model:
    prices = listed.prices[-1].prices if isinstance(listed.prices, list) else listed.prices
    return Model(
        name=f"{provider}:{listed.id}",
        title=listed.name or listed.id,
        context=listed.context_window,
        input_usd=_base_price(getattr(prices, "input_mtok", None)),
        output_usd=_base_price(getattr(prices, "output_mtok", None)),
        variable=_key_variable(provider),
    )


def _base_price(price: Any) -> float | None:
    value = getattr(price, "base", price)
    return None if value is None else float(value)
