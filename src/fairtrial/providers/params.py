"""What models take beside a prompt: one table, for targets, judges, drafts and agents alike.

A parameter that a model does not take is neither sent nor recorded: providers refuse the whole call over it. Newer
models take less than older ones, so a name that is not known yet is treated like its family's newest member.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from fairtrial.core import registry
from fairtrial.core.experiment import TargetSpec

_SAMPLING = frozenset({"temperature", "top_p"})
PENALTIES = frozenset({"frequency_penalty", "presence_penalty"})
_SAYS_NOTHING = {"top_p": 1, "frequency_penalty": 0, "presence_penalty": 0}  # what a model does untold
_ROOM_TO_THINK = 16_384  # completion tokens of a model that thinks: its thoughts count as completion


class Api(msgspec.Struct, frozen=True, kw_only=True):
    """What a whole API takes, whatever the model."""

    refuses: frozenset[str] = frozenset()
    longest: int | None = None  # tokens, where it wants to be told how long an answer may be and nobody said
    without_neutral: bool = False  # a `top_p` that says nothing is better left out


class ModelParams(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model's parameters."""

    refuses: frozenset[str] = frozenset()
    one_of_sampling: bool = False  # temperature or top_p, not both
    effort: str | None = None  # its default; it takes sampling parameters only at effort `none`
    tools_without_effort: bool = False  # it takes tools only at effort `none`
    thinks: bool = False
    long_name: bool = False  # it knows `max_tokens` only as `max_completion_tokens`
    json_format: bool = False  # Messages: it takes a schema as `output_config.format`, else as a tool


_OPENAI = ModelParams(thinks=True, long_name=True)
_CLAUDE = ModelParams(refuses=PENALTIES | {"seed"})
_MODELS: tuple[tuple[str, ModelParams], ...] = (
    (r"gpt-[5-9].*chat", ModelParams(long_name=True)),
    (r"o[34]", replace(_OPENAI, refuses=_SAMPLING | PENALTIES | {"stop"})),
    (r"o\d|gpt-5(?!\.)", replace(_OPENAI, refuses=_SAMPLING | PENALTIES)),
    (r"gpt-5\.[1-4](?!\d)", replace(_OPENAI, refuses=PENALTIES, effort="none")),
    (
        r"gpt-5\.6-luna",
        replace(_OPENAI, refuses=PENALTIES, effort="medium", tools_without_effort=True),
    ),
    (r"gpt-[5-9]", replace(_OPENAI, refuses=PENALTIES, effort="medium")),
    (r"claude-(?:v?[0-3]|instant)", _CLAUDE),
    (r"claude-\w+-4(?:[-.]0)?(?:$|[-.@:](?:\d{8}|latest))", _CLAUDE),
    (r"claude-\w+-4[-.]1(?!\d)", replace(_CLAUDE, one_of_sampling=True)),
    (r"claude-\w+-4[-.][2-6](?!\d)", replace(_CLAUDE, one_of_sampling=True, json_format=True)),
    (r"claude-", replace(_CLAUDE, refuses=_CLAUDE.refuses | _SAMPLING, thinks=True, json_format=True)),
    (r"deepseek-r|gemini-(?:2\.5|[3-9])|grok-(?:3-mini|[4-9])|qwq|magistral", ModelParams(thinks=True)),
)


@lru_cache(maxsize=256)
def model_of(name: str) -> ModelParams:
    """What is known of the model of this name; a router's or a fine-tune's name has the model's own in it."""
    plain = name.rsplit("/", 1)[-1].lower().removeprefix("ft:")
    return next((model for pattern, model in _MODELS if re.match(pattern, plain)), ModelParams())


def _api_of(spec: TargetSpec) -> Api | None:
    """What the API behind a target takes; None where there is none."""
    return getattr(registry.load("targets", spec.api or spec.kind), "api", None)


def taken(spec: TargetSpec, params: Mapping[str, Any], *, tools: bool = False) -> dict[str, Any]:
    """Those of the parameters that this target takes, by the names that suites use: what is sent and recorded."""
    api, model = _api_of(spec) or Api(), model_of(spec.model)
    extra: dict[str, Any] = params.get("extra") or {}
    if tools and model.tools_without_effort and "reasoning_effort" not in extra:
        extra = {**extra, "reasoning_effort": "none"}
    left_out = model.refuses | api.refuses
    if thinking_of(extra) or (model.effort is not None and extra.get("reasoning_effort", model.effort) != "none"):
        left_out |= _SAMPLING
    found = {
        name: value for name, value in params.items() if value is not None and name not in left_out and name != "extra"
    }
    if api.longest is not None:
        found.setdefault("max_tokens", api.longest)
    if found.get("top_p") is not None and (
        (model.one_of_sampling and "temperature" in found) or (api.without_neutral and found["top_p"] == 1)
    ):
        del found["top_p"]
    return {**found, "extra": extra} if extra else found


def not_taken(spec: TargetSpec, params: Mapping[str, Any]) -> list[str]:
    """Which of the parameters a model behind an API does not take, though they would say something."""
    if _api_of(spec) is None:
        return []
    kept = taken(spec, params)
    return [
        name
        for name, value in params.items()
        if value is not None and name not in kept and name != "extra" and value != _SAYS_NOTHING.get(name)
    ]


def room(spec: TargetSpec, params: Mapping[str, Any], tokens: int) -> int:
    """How many completion tokens a reply of so many tokens needs, thoughts included."""
    extra: dict[str, Any] = params.get("extra") or {}
    thinking = thinking_of(extra)
    if not (thinking or "reasoning_effort" in extra or model_of(spec.model).thinks):
        return tokens
    return max(_ROOM_TO_THINK, int(thinking.get("budget_tokens") or 0) + tokens)


def thinking_of(extra: Mapping[str, Any]) -> dict[str, Any]:
    """What `extra` says about a Claude's thinking, where it is on: then sampling parameters are refused."""
    given = extra.get("thinking")
    return given if isinstance(given, dict) and given.get("type") not in (None, "disabled") else {}
