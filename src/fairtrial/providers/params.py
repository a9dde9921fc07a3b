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
from fairtrial.core.providers import Provider, known_providers
from fairtrial.providers.reasoning import LEVELS, Reasoning, Thinking, room_for

_SAMPLING = frozenset({"temperature", "top_p"})
PENALTIES = frozenset({"frequency_penalty", "presence_penalty"})
_DEFAULTS = {"top_p": 1, "frequency_penalty": 0, "presence_penalty": 0}  # the models' defaults
_REASONING_TOKENS = 16_384  # completion tokens for a reasoning model, whose reasoning counts as completion


class Api(msgspec.Struct, frozen=True, kw_only=True):
    """What an API accepts for all its models."""

    refuses: frozenset[str] = frozenset()
    longest: int | None = None  # `max_tokens` to send if the API requires one and none is set
    without_neutral: bool = False  # leave out a `top_p` of 1 and penalties of 0, which have no effect


class ModelParams(msgspec.Struct, frozen=True, kw_only=True):
    """What a model accepts."""

    refuses: frozenset[str] = frozenset()
    one_of_sampling: bool = False  # temperature or top_p, not both
    effort: str | None = None  # its default; it accepts sampling parameters only at effort `none`
    tools_without_effort: bool = False  # it accepts tools only at effort `none`
    thinks: bool = False
    sampling_or_thinking: bool = False  # it accepts sampling parameters only while it does not think
    long_name: bool = False  # it accepts `max_tokens` only as `max_completion_tokens`
    json_format: bool = False  # Messages API: it accepts a schema as `output_config.format`, otherwise as a tool
    reasoning: Thinking | None = None  # how it can be told how much to reason
    preamble: int = 0  # tokens, at most, of what its provider or its template puts before every prompt


_FROM_LOW = Thinking(levels=("low", "medium", "high"))
_FROM_NONE = Thinking(levels=("none", "low", "medium", "high"))
_SMALL_BUDGET = Thinking(tokens=(1024, 28_000))  # of 32,000
_BUDGET = Thinking(tokens=(1024, 56_000))  # of the 64,000 that these models can write
_OPENAI = ModelParams(thinks=True, long_name=True, reasoning=_FROM_NONE)
_CLAUDE = ModelParams(refuses=PENALTIES | {"seed"}, sampling_or_thinking=True)
_GEMINI = ModelParams(thinks=True)
_MODELS: tuple[tuple[str, ModelParams], ...] = (
    (r"gpt-oss", ModelParams(thinks=True, reasoning=_FROM_LOW, preamble=128)),
    (r"gpt-[5-9].*chat", ModelParams(long_name=True)),
    (r"o[34]", replace(_OPENAI, refuses=_SAMPLING | PENALTIES | {"stop"}, reasoning=_FROM_LOW)),
    (r"o\d", replace(_OPENAI, refuses=_SAMPLING | PENALTIES, reasoning=_FROM_LOW)),
    (r"gpt-5(?!\.)", replace(_OPENAI, refuses=_SAMPLING | PENALTIES, reasoning=Thinking(levels=LEVELS[1:5]))),
    (r"gpt-5\.[1-4](?!\d)", replace(_OPENAI, refuses=PENALTIES, effort="none")),
    (
        r"gpt-5\.6-luna",
        replace(_OPENAI, refuses=PENALTIES, effort="medium", tools_without_effort=True),
    ),
    (r"gpt-[5-9]", replace(_OPENAI, refuses=PENALTIES, effort="medium")),
    (r"claude-3[-.]7", replace(_CLAUDE, reasoning=_BUDGET)),
    (r"claude-(?:v?[0-3]|instant)", _CLAUDE),
    (r"claude-\w+-4(?:[-.]0)?(?:$|[-.@:](?:\d{8}|latest))", replace(_CLAUDE, reasoning=_SMALL_BUDGET)),
    (r"claude-\w+-4[-.]1(?!\d)", replace(_CLAUDE, one_of_sampling=True, reasoning=_SMALL_BUDGET)),
    (r"claude-\w+-4[-.][2-6](?!\d)", replace(_CLAUDE, one_of_sampling=True, json_format=True, reasoning=_BUDGET)),
    (
        r"claude-",
        replace(_CLAUDE, refuses=_CLAUDE.refuses | _SAMPLING, thinks=True, json_format=True, reasoning=_FROM_NONE),
    ),
    (r"gemini-2\.5-flash-lite", replace(_GEMINI, thinks=False, reasoning=Thinking(tokens=(512, 24_576)))),
    (r"gemini-2\.5-flash", replace(_GEMINI, reasoning=Thinking(tokens=(1, 24_576)))),
    (r"gemini-2\.5", replace(_GEMINI, reasoning=Thinking(tokens=(128, 32_768), off=False))),
    (r"gemini-3(?:\.[0-6](?!\d))?-flash", replace(_GEMINI, reasoning=Thinking(levels=LEVELS[1:5]))),
    (r"gemini-[3-9]", replace(_GEMINI, reasoning=_FROM_LOW)),
    (r"grok-3-mini", ModelParams(thinks=True, reasoning=Thinking(levels=("low", "high")))),
    (r"grok-[4-9]", ModelParams(thinks=True, refuses=PENALTIES | {"stop"}, preamble=1024)),
    (r"magistral", ModelParams(thinks=True, reasoning=Thinking(levels=("none", "high")))),
    (r"mistral-(?:small|medium|large)", ModelParams(reasoning=Thinking(levels=("none", "high")))),
    (r"deepseek-r|qwq", ModelParams(thinks=True)),
)
_ANY = Thinking(levels=("none", "low", "medium", "high"))
# Vendors whose reasoning models are all in the table; others (routers, your own server) have to know it themselves.
_VENDORS = frozenset({"openai", "openai-responses", "azure", "anthropic", "google", "vertex", "bedrock", "mistral"})
# Before a model's name, on Bedrock and Vertex: a region and the vendor (`us.anthropic.claude-…`, `publishers/…`).
_VENDOR = re.compile(r"^(?:(?:us|us-gov|eu|apac|jp|au|global)\.)?(?:anthropic|openai|mistral|amazon|deepseek|qwen)\.")


@lru_cache(maxsize=256)
def model_of(name: str) -> ModelParams:
    """Return what the model with this name accepts; names of routers and fine-tunes contain the model's name."""
    plain = _VENDOR.sub("", name.rsplit("/", 1)[-1].lower().removeprefix("ft:"))
    return next((model for pattern, model in _MODELS if re.match(pattern, plain)), ModelParams())


def model_behind(spec: TargetSpec) -> ModelParams:
    """Return what a target's model accepts; `options: {model: …}` names the model behind a deployment."""
    return model_of(str(spec.options.get("model") or spec.model))


def _api_of(spec: TargetSpec) -> Api | None:
    """Return what the API behind a target accepts, or None if there is no API."""
    accepts = getattr(registry.load("targets", spec.api or spec.kind), "accepts", None)
    return accepts(spec) if accepts else None


def provider_of(spec: TargetSpec) -> Provider:
    """Return where a target's provider differs from others with the same API."""
    return known_providers().get(spec.provider) or Provider(kind=spec.kind)


def supported_params(spec: TargetSpec, params: Mapping[str, Any], *, tools: bool = False) -> dict[str, Any]:
    """Return the parameters that this target accepts, by their names in suites: these are sent and recorded."""
    api, model = _api_of(spec) or Api(), model_behind(spec)
    extra: dict[str, Any] = params.get("extra") or {}
    reasoning = _reasoning(spec, params)
    if tools and model.tools_without_effort and "reasoning_effort" not in extra:
        extra, reasoning = {**extra, "reasoning_effort": "none"}, None
    left_out = model.refuses | api.refuses | provider_of(spec).refuses | {"reasoning", "extra"}
    if _reasons(model, reasoning, extra):
        left_out |= _SAMPLING
    accepted = {name: value for name, value in params.items() if value is not None and name not in left_out}
    if api.longest is not None:
        accepted.setdefault("max_tokens", api.longest)
    if api.without_neutral:
        accepted = {name: value for name, value in accepted.items() if value != _DEFAULTS.get(name)}
    if model.one_of_sampling and "temperature" in accepted:
        accepted.pop("top_p", None)
    if reasoning is not None:
        accepted["reasoning"] = reasoning
        if "max_tokens" in accepted:
            accepted["max_tokens"] += room_for(reasoning)
    return {**accepted, "extra": extra} if extra else accepted


def _reasoning(spec: TargetSpec, params: Mapping[str, Any]) -> Reasoning | None:
    """Return how much to reason, in what the model takes; None if nothing is to be sent."""
    wanted, extra = params.get("reasoning"), params.get("extra") or {}
    if wanted is None or any(key in extra for key in ("reasoning_effort", "thinking", "reasoning")):
        return None
    how = model_behind(spec).reasoning or (None if spec.provider in _VENDORS else _ANY)
    return how.nearest(wanted) if how else None


def _reasons(model: ModelParams, reasoning: Reasoning | None, extra: Mapping[str, Any]) -> bool:
    """Return whether the model will reason in a way that excludes sampling parameters."""
    if thinking_of(extra) or (model.sampling_or_thinking and reasoning not in (None, 0, "none")):
        return True
    effort = extra.get("reasoning_effort", model.effort if reasoning is None else reasoning)
    return model.effort is not None and effort != "none"


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
    if _reasoning(spec, params) is not None:
        return tokens  # the room for that is added when it is sent
    if not (thinking or "reasoning_effort" in extra or model_behind(spec).thinks):
        return tokens
    return max(_REASONING_TOKENS, int(thinking.get("budget_tokens") or 0) + tokens)


def thinking_of(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return Claude's thinking settings from `extra` if thinking is on; sampling parameters are then rejected."""
    thinking = extra.get("thinking")
    return thinking if isinstance(thinking, dict) and thinking.get("type") not in (None, "disabled") else {}
