"""Anthropic's models: lifecycle, limits, files, schemas, and how their thinking can be set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fairtrial.providers.model_lists import ModelList, Row, day_of, objects, providers_named, stated, whole_number
from fairtrial.providers.reasoning import LEVELS
from fairtrial.providers.retirement import today

_SNAPSHOT = re.compile(r"-20\d{6}$")


def _following(page: Mapping[str, Any]) -> str:
    return f"after_id={page['last_id']}" if page.get("has_more") and page.get("last_id") else ""


LIST = ModelList(
    name="anthropic",
    path="/v1/models?limit=1000",
    headers=lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
    following=_following,
)


def read(page: Any) -> list[Row]:
    """Return a row for each model, and one for the name without a date of the newest snapshot."""
    models = sorted(objects(page), key=lambda model: str(model["id"]))
    rows = {str(model["id"]): _facts(model) for model in models}
    short = {_SNAPSHOT.sub("", name): facts for name, facts in rows.items()}  # the newest comes last
    return [
        {"name": name, "providers": providers_named("anthropic"), **facts} for name, facts in (short | rows).items()
    ]


def _facts(model: Mapping[str, Any]) -> Row:
    facts = stated(context=whole_number(model.get("max_input_tokens")), output=whole_number(model.get("max_tokens")))
    facts |= _end(model)
    can = model.get("capabilities")
    if not isinstance(can, dict):
        return facts
    files = [name for name in ("image", "pdf") if _supported(can, f"{name}_input")]
    return {**facts, "files": files, "schemas": _supported(can, "structured_outputs"), **_thinking(can)}


def _end(model: Mapping[str, Any]) -> Row:
    """Return when it ends: an active model has no date, and a retired one may lack it."""
    stage, day = model.get("lifecycle"), day_of(model.get("retires_at"))
    if stage == "active":
        return {"ends": None}
    if stage == "retired":
        return {"ends": min(day or today().isoformat(), today().isoformat())}
    return stated(ends=day)


def _thinking(can: Mapping[str, Any]) -> Row:
    """Return the efforts of a model that adapts its thinking; budgets of tokens have no bounds in the list."""
    thinking, effort = can.get("thinking"), can.get("effort")
    if not isinstance(thinking, dict) or not isinstance(effort, dict):
        return {}
    if not thinking.get("supported"):
        return {"reasoning": None}
    types = thinking.get("types") or {}
    if not effort.get("supported") or not _supported(types, "adaptive") or _supported(types, "enabled"):
        return {}
    off = next((name for name in ("disabled", "between_tools") if _supported(types, name)), "")
    levels = [*(["none"] if off else []), *(level for level in LEVELS[1:] if _supported(effort, level))]
    return {"reasoning": {"levels": levels, **({"off": off} if off else {})}}


def _supported(of: Mapping[str, Any], name: str) -> bool:
    return isinstance(of.get(name), dict) and of[name].get("supported") is True
