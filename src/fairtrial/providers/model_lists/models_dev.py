"""The table of models.dev: limits and prices. It has no dates, and what models refuse is not taken from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtrial.providers.model_lists import AT_THE_VENDOR, SAME_NAMES, ModelList, Row, price, stated, whole_number
from fairtrial.providers.sheet import plain_model

LIST = ModelList(name="models_dev", address="https://models.dev/api.json", variable="FAIRTRIAL_MODELS_DEV_URL")
_OURS = {
    **AT_THE_VENDOR,
    **SAME_NAMES,
    "google-vertex": ("vertex",),
    "google-vertex-anthropic": ("vertex",),
    "amazon-bedrock": ("bedrock",),
    "togetherai": ("together",),
    "fireworks-ai": ("fireworks",),
}  # our providers by its own names
_RATES = {"input": "input", "output": "output", "cache_read": "cache_read", "cache_write": "cache_write"}


def read(table: Any) -> list[Row]:
    """Return a row for each model of a provider that suites can name."""
    if not isinstance(table, dict):
        raise ValueError("it is not an object")
    rows: dict[tuple[str, tuple[str, ...]], Row] = {}
    for theirs, ours in _OURS.items():
        models = (table.get(theirs) or {}).get("models") or {}
        for name, model in models.items():
            plain = plain_model(name)
            rows.setdefault((plain, ours), {"name": plain, "providers": list(ours), **_facts(model)})
    return list(rows.values())


def _facts(model: Mapping[str, Any]) -> Row:
    limit = model.get("limit") or {}
    return stated(
        context=whole_number(limit.get("context")),
        output=whole_number(limit.get("output")),
        other_prices=price(model.get("cost") or {}, _RATES),
    )
