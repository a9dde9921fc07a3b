"""OpenRouter's models, as OpenRouter offers them: for targets `openrouter:…` alone. No key is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from fairtrial.providers.model_lists import PER_MILLION, ModelList, Row, day_of, objects, price, stated, whole_number
from fairtrial.providers.reasoning import LEVELS
from fairtrial.providers.sheet import plain_model

_RATES = {
    "input": "prompt",
    "output": "completion",
    "cache_read": "input_cache_read",
    "cache_write": "input_cache_write",
}


def _following(page: Mapping[str, Any]) -> str:
    links = page.get("links")
    return urlsplit(str(links["next"])).query if isinstance(links, dict) and links.get("next") else ""


LIST = ModelList(name="openrouter", path="/models", following=_following)


def read(page: Any) -> list[Row]:
    """Return a row for each model."""
    return [
        {"name": plain_model(str(model["id"])), "providers": ["openrouter"], **_facts(model)} for model in objects(page)
    ]


def _facts(model: Mapping[str, Any]) -> Row:
    top = model.get("top_provider") or {}
    return stated(
        ends=day_of(model.get("expiration_date")),
        context=whole_number(model.get("context_length")),
        output=whole_number(top.get("max_completion_tokens")),
        prices=price(model.get("pricing") or {}, _RATES, PER_MILLION),
        reasoning=_reasoning(model.get("reasoning")),
    )


def _reasoning(told: Any) -> Row | None:
    """Return the efforts that OpenRouter accepts for a model; None if it names none."""
    efforts = told.get("supported_efforts") if isinstance(told, dict) else None
    levels = [level for level in LEVELS if isinstance(efforts, list) and level in efforts]
    if not levels:
        return None
    if not told.get("mandatory") and levels[0] != "none":
        levels.insert(0, "none")
    return {"levels": levels, **({"default": told["default_effort"]} if told.get("default_effort") in levels else {})}
