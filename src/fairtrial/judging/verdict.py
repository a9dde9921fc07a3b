"""A judge's reply into a typed verdict: the last JSON object counts, and every range is checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from fairtrial.core.answer import Image
from fairtrial.core.ids import canonical_json, content_hash

_DECODER = json.JSONDecoder()


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
    images: tuple[Image, ...] = ()


def hash_prompt(*parts: Any) -> str:
    """Identity of a judge's prompt without the answer it is about."""
    return content_hash(list(parts))[:16]


def read_verdict(prompt: JudgePrompt, reply: str, *, cut_off: bool = False) -> Verdict | str:
    """The verdict, or in one sentence what is wrong with the reply."""
    if cut_off:
        return "it was cut off at max_tokens"
    found = _last_object(reply)
    if isinstance(found, str):
        return found
    errors = list(_validator(canonical_json(prompt.schema)).iter_errors(found))
    if errors:
        where = ".".join(map(str, errors[0].instance_path)) or "the object"
        return f"{where}: {errors[0].message}"
    return prompt.read(found)


def _last_object(reply: str) -> dict[str, Any] | str:
    """The last JSON object of a reply in which every object is complete, or why there is none.

    An object that begins and does not end properly makes the whole reply unusable: what can be read before or inside
    it may be a quotation of the answer, and the answer is not the judge.
    """
    found: dict[str, Any] | None = None
    position = 0
    while (start := reply.find("{", position)) >= 0:
        try:
            found, position = _DECODER.raw_decode(reply, start)
        except (ValueError, RecursionError):
            return "there is a JSON object in it that is not complete"
    return "there is no JSON object in it" if found is None else found


@lru_cache(maxsize=64)
def _validator(schema: bytes) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(msgspec.json.decode(schema))
