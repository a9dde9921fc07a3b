"""Parse a judge's reply into a typed verdict: one JSON object, validated against a schema with all ranges."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from fairtrial.core.file import File
from fairtrial.core.ids import canonical_json, content_hash
from fairtrial.core.scorer import Scorer
from fairtrial.text.json_text import in_pairs, same_json


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's verdict on one answer; `value` is 0–1, metrics are on their own scales."""

    value: float
    metrics: dict[str, float] = {}
    reasoning: dict[str, str] = {}
    claims: tuple[str, ...] = ()


class NoVerdict(msgspec.Struct, frozen=True):
    """The reason why a reply contains no usable verdict.

    `reason` is one of a few fixed sentences and may be sent to the judge. `detail` may quote the reply, and with it the
    judged answer, so it is only shown to users.
    """

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


CUT_OFF = NoVerdict("it was cut off at max_tokens")
NO_OBJECT = NoVerdict("there is no JSON object in it")
BROKEN = NoVerdict("there is a JSON object in it that is not complete")
DUPLICATE_KEY = NoVerdict("a key occurs twice in one JSON object")
SEVERAL = NoVerdict("there are several JSON objects in it that differ")
WRONG_FORM = "the JSON object does not have the form that was asked for"


class JudgePrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's prompt, the JSON schema of the reply, and the function that reads it."""

    system: str
    text: str
    schema: dict[str, Any]
    read: Callable[[Any], Verdict]
    hash: str
    params: dict[str, Any] = {}
    images: tuple[File, ...] = ()


def hash_prompt(*parts: Any) -> str:
    """Return the hash of a judge's prompt without the answer to judge."""
    return content_hash(list(parts))[:16]


def extraction_key(scorer: Scorer) -> tuple[Any, ...]:
    """Return what a hash must also contain if the judge sees a part of the answer: another part, another verdict."""
    return () if scorer.extract is None else (scorer.extract,)


def read_judgement(prompt: JudgePrompt, reply: str, *, cut_off: bool = False) -> Verdict | NoVerdict:
    """Return the verdict, or what is wrong with the reply."""
    if cut_off:
        return CUT_OFF
    reply_object = _only_object(reply)
    if isinstance(reply_object, NoVerdict):
        return reply_object
    reply_object = in_pairs(reply_object, reply)
    errors = list(_validator(canonical_json(prompt.schema)).iter_errors(reply_object))
    if errors:
        where = ".".join(map(str, errors[0].instance_path)) or "the object"
        return NoVerdict(WRONG_FORM, f"{where}: {errors[0].message}")
    return prompt.read(reply_object)


def _only_object(reply: str) -> dict[str, Any] | NoVerdict:
    """Return the only JSON object of a reply, which may be repeated; text, code fences and brackets are ignored.

    Anything else is not a verdict. A second, different object, or one that does not end, may be quoted from the answer,
    which must not decide its own score; we never guess which of two objects is the verdict.
    """
    verdict: dict[str, Any] | None = None
    position = 0
    while (start := reply.find("{", position)) >= 0:
        try:
            value, position = _DECODER.raw_decode(reply, start)
            if verdict is not None and not same_json(verdict, value):
                return SEVERAL
        except _DuplicateKeyError:
            return DUPLICATE_KEY
        except (ValueError, RecursionError):
            return BROKEN
        verdict = value
    return NO_OBJECT if verdict is None else verdict


class _DuplicateKeyError(Exception):
    """A JSON object has the same key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise _DuplicateKeyError
    return result


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_reject_constant)


@lru_cache(maxsize=64)
def _validator(schema: bytes) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(msgspec.json.decode(schema))
