"""LiteLLM's table of models: dates, limits and prices. What models refuse is not taken from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtrial.providers.model_lists import (
    AT_THE_VENDOR,
    PER_MILLION,
    SAME_NAMES,
    ModelList,
    Row,
    day_of,
    price,
    stated,
    whole_number,
)
from fairtrial.providers.sheet import plain_model

LIST = ModelList(
    name="litellm",
    address="https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json",
    variable="FAIRTRIAL_LITELLM_URL",
)
_OURS = {
    **AT_THE_VENDOR,
    **SAME_NAMES,
    "gemini": AT_THE_VENDOR["google"],
    "bedrock": ("bedrock",),
    "bedrock_converse": ("bedrock",),
    "vertex_ai-language-models": ("vertex",),
    "vertex_ai-anthropic_models": ("vertex",),
    "together_ai": ("together",),
    "fireworks_ai": ("fireworks",),
}  # our providers by its own names
_MODES = ("chat", "responses", "completion", "embedding")
_RATES = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}


def read(table: Any) -> list[Row]:
    """Return a row for each model of a provider that suites can name."""
    if not isinstance(table, dict):
        raise ValueError("it is not an object")
    rows: dict[tuple[str, tuple[str, ...]], Row] = {}
    for name, model in table.items():
        providers = _OURS.get(str(model.get("litellm_provider"))) if isinstance(model, dict) else None
        if providers and model.get("mode") in _MODES and not name.startswith("ft:"):
            plain = plain_model(name)
            rows.setdefault((plain, providers), {"name": plain, "providers": list(providers), **_facts(model)})
    return list(rows.values())


def _facts(model: Mapping[str, Any]) -> Row:
    return stated(
        ends=day_of(model.get("deprecation_date")),
        context=whole_number(model.get("max_input_tokens")),
        output=whole_number(model.get("max_output_tokens")),
        other_prices=price(model, _RATES, PER_MILLION),
    )
