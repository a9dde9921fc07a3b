"""OpenAI's models: on which day each of them ends. What they accept is not in the list."""

from __future__ import annotations

from typing import Any

from fairtrial.providers.model_lists import ModelList, Row, bearer, day_of, objects, providers_named, stated

LIST = ModelList(name="openai", path="/v1/models", headers=bearer)


def read(page: Any) -> list[Row]:
    """Return a row for each model; fine-tunes, which only their owners can ask, are left out."""
    return [
        {
            "name": str(model["id"]),
            "providers": providers_named("openai"),
            **stated(ends=day_of(model.get("shutdown_date"))),
        }
        for model in objects(page)
        if not str(model["id"]).startswith("ft:")
    ]
