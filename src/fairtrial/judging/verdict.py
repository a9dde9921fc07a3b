"""A judge's reply into a typed verdict: one object, of the right form, in which every range is checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from fairtrial.core.answer import Image
from fairtrial.core.ids import canonical_json, content_hash
from fairtrial.core.json_text import same_json


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge says of one answer; `value` is 0–1, metrics are on their own scales."""

    value: float
    metrics: dict[str, float] = {}
    reasoning: dict[str, str] = {}
    claims: tuple[str, ...] = ()


class NoVerdict(msgspec.Struct, frozen=True):
    """Why a reply is no verdict.

    `reason` is one of a few fixed sentences and may be told to the judge; `detail` may quote the reply, and with it
    the answer that was judged: it is for people.
    """

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


CUT_OFF = NoVerdict("it was cut off at max_tokens")
NO_OBJECT = NoVerdict("there is no JSON object in it")
BROKEN = NoVerdict("there is a JSON object in it that is not complete")
TWO_KEYS = NoVerdict("a key stands twice in one JSON object")
SEVERAL = NoVerdict("there are several JSON objects in it that differ")
WRONG_FORM = "the JSON object does not have the form that was asked for"


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


def read_verdict(prompt: JudgePrompt, reply: str, *, cut_off: bool = False) -> Verdict | NoVerdict:
    """The verdict, or what is wrong with the reply."""
    if cut_off:
        return CUT_OFF
    found = _only_object(reply)
    if isinstance(found, NoVerdict):
        return found
    errors = list(_validator(canonical_json(prompt.schema)).iter_errors(found))
    if errors:
        where = ".".join(map(str, errors[0].instance_path)) or "the object"
        return NoVerdict(WRONG_FORM, f"{where}: {errors[0].message}")
    return prompt.read(found)


def _only_object(reply: str) -> dict[str, Any] | NoVerdict:
    """The one JSON object of a reply, which may be repeated; words, fences and brackets around it do not matter.

    Anything else is no verdict. An object beside it, or one that begins and does not end, may be a quotation of the
    answer, and the answer is not the judge; which of two is the verdict is not for us to guess.
    """
    found: dict[str, Any] | None = None
    position = 0
    while (start := reply.find("{", position)) >= 0:
        try:
            value, position = _DECODER.raw_decode(reply, start)
            if found is not None and not same_json(found, value):
                return SEVERAL
        except _TwoKeysError:
            return TWO_KEYS
        except (ValueError, RecursionError):
            return BROKEN
        found = value
    return NO_OBJECT if found is None else found


class _TwoKeysError(Exception):
    """An object that says two things under one name."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwoKeysError
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)


@lru_cache(maxsize=64)
def _validator(schema: bytes) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(msgspec.json.decode(schema))
