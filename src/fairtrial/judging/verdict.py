"""A judge's reply into a typed verdict: the last complete JSON object counts, and every range is checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from fairtrial.core.ids import canonical_json, content_hash
from fairtrial.core.json_text import last_json


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge says of one answer; `value` is 0–1, metrics are on their own scales."""

    value: float
    metrics: dict[str, float] = {}
    reasoning: dict[str, str] = {}
    claims: tuple[str, ...] = ()


class JudgePrompt(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge is asked, the shape of the reply, and how to read it."""

    system: str
    text: str
    schema: dict[str, Any]
    read: Callable[[Any], Verdict]
    hash: str
    params: dict[str, Any] = {}


def hash_prompt(*parts: Any) -> str:
    """Identity of a judge's prompt without the answer it is about."""
    return content_hash(list(parts))[:16]


def read_verdict(prompt: JudgePrompt, reply: str) -> Verdict | str:
    """The verdict, or in one sentence what is wrong with the reply."""
    found = last_json(reply)
    if found is None or not isinstance(found.value, dict):
        return "there is no JSON object in it"
    errors = list(_validator(canonical_json(prompt.schema)).iter_errors(found.value))
    if errors:
        where = ".".join(map(str, errors[0].instance_path)) or "the object"
        return f"{where}: {errors[0].message}"
    return prompt.read(found.value)


@lru_cache(maxsize=64)
def _validator(schema: bytes) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(msgspec.json.decode(schema))
