"""Mistral's models: the day on which each is removed, what replaces it, and its context."""

from __future__ import annotations

from typing import Any

from fairtrial.providers.model_lists import ModelList, Row, bearer, day_of, objects, stated, whole_number

LIST = ModelList(name="mistral", path="/v1/models", headers=bearer)


def read(page: Any) -> list[Row]:
    """Return a row for each model, and one for each of its other names; own fine-tunes are left out."""
    rows: dict[str, Row] = {}
    for model in objects(page):
        if model.get("type", "base") != "base":
            continue
        facts = stated(
            ends=day_of(model.get("deprecation")),
            successor=model.get("deprecation_replacement_model") or None,
            context=whole_number(model.get("max_context_length")),
        )
        for name in (model["id"], *(model.get("aliases") or ())):
            rows.setdefault(str(name), {"name": str(name), "providers": ["mistral"], **facts})
    return list(rows.values())
