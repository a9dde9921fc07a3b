"""Which parameters models accept: one table for targets, judges, drafts and agents.

A parameter that a model does not accept is neither sent nor recorded, because providers reject the whole call over it.
Newer models accept fewer than older ones, so an unknown name is treated like the newest member of its family.
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
_DEFAULTS = {"top_p": 1, "frequency_penalty": 0, "presence_penalty": 0}  # the models' defaults
_REASONING_TOKENS = 16_384  # completion tokens for a reasoning model, whose reasoning counts as completion


class Api(msgspec.Struct, frozen=True, kw_only=True):
    """What an API accepts for all its models."""

    refuses: frozenset[str] = frozenset()
    longest: int | None = None  # `max_tokens` to send if the API requires one and none is set
    without_neutral: bool = False  # leave out a `top_p` of 1, which has no effect


class ModelParams(msgspec.Struct, frozen=True, kw_only=True):
    """What a model accepts."""

    refuses: frozenset[str] = frozenset()
    one_of_sampling: bool = False  # temperature or top_p, not both
    effort: str | None = None  # its default; it accepts sampling parameters only at effort `none`
    tools_without_effort: bool = False  # it accepts tools only at effort `none`
    thinks: bool = False
    long_name: bool = False  # it accepts `max_tokens` only as `max_completion_tokens`
    json_format: bool = False  # Messages API: it accepts a schema as `output_config.format`, otherwise as a tool


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
    """Return what the model with this name accepts; names of routers and fine-tunes contain the model's name."""
    plain = name.rsplit("/", 1)[-1].lower().removeprefix("ft:")
    return next((model for pattern, model in _MODELS if re.match(pattern, plain)), ModelParams())


def _api_of(spec: TargetSpec) -> Api | None:
    """Return what the API behind a target accepts, or None if there is no API."""
    return getattr(registry.load("targets", spec.api or spec.kind), "api", None)


def supported_params(spec: TargetSpec, params: Mapping[str, Any], *, tools: bool = False) -> dict[str, Any]:
    """Return the parameters that this target accepts, by their names in suites: these are sent and recorded."""
    api, model = _api_of(spec) or Api(), model_of(spec.model)
    extra: dict[str, Any] = params.get("extra") or {}
    if tools and model.tools_without_effort and "reasoning_effort" not in extra:
        extra = {**extra, "reasoning_effort": "none"}
    left_out = model.refuses | api.refuses
    if thinking_of(extra) or (model.effort is not None and extra.get("reasoning_effort", model.effort) != "none"):
        left_out |= _SAMPLING
    accepted = {
        name: value for name, value in params.items() if value is not None and name not in left_out and name != "extra"
    }
    if api.longest is not None:
        accepted.setdefault("max_tokens", api.longest)
    if accepted.get("top_p") is not None and (
        (model.one_of_sampling and "temperature" in accepted) or (api.without_neutral and accepted["top_p"] == 1)
    ):
        del accepted["top_p"]
    return {**accepted, "extra": extra} if extra else accepted


def unsupported_params(spec: TargetSpec, params: Mapping[str, Any]) -> list[str]:
    """Return the parameters that a model behind an API does not accept, except those at their default."""
    if _api_of(spec) is None:
        return []
    supported = supported_params(spec, params)
    return [
        name
        for name, value in params.items()
        if value is not None and name not in supported and name != "extra" and value != _DEFAULTS.get(name)
    ]


def tokens_needed(spec: TargetSpec, params: Mapping[str, Any], tokens: int) -> int:
    """Return how many completion tokens a reply of `tokens` tokens needs, including reasoning."""
    extra: dict[str, Any] = params.get("extra") or {}
    thinking = thinking_of(extra)
    if not (thinking or "reasoning_effort" in extra or model_of(spec.model).thinks):
        return tokens
    return max(_REASONING_TOKENS, int(thinking.get("budget_tokens") or 0) + tokens)


def thinking_of(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return Claude's thinking settings from `extra` if thinking is on; sampling parameters are then rejected."""
    thinking = extra.get("thinking")
    return thinking if isinstance(thinking, dict) and thinking.get("type") not in (None, "disabled") else {}
