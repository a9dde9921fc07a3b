"""Google's models: their limits. Dates and levels of thinking are not in the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fairtrial.providers.model_lists import ModelList, Row, objects, providers_named, stated, whole_number


def _following(page: Mapping[str, Any]) -> str:
    return f"pageToken={quote(str(page['nextPageToken']))}" if page.get("nextPageToken") else ""


LIST = ModelList(
    name="google",
    path="/v1beta/models?pageSize=1000",
    headers=lambda key: {"x-goog-api-key": key},
    following=_following,
)


def read(page: Any) -> list[Row]:
    """Return a row for each model that answers."""
    return [
        {
            "name": str(model["name"]).removeprefix("models/"),
            "providers": providers_named("google"),
            **stated(
                context=whole_number(model.get("inputTokenLimit")), output=whole_number(model.get("outputTokenLimit"))
            ),
        }
        for model in objects(page, "models")
        if "generateContent" in (model.get("supportedGenerationMethods") or ())
    ]
