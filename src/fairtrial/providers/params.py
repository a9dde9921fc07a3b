"""Which parameters are sent: what a suite says, as far as the model and its API accept it, by the model sheet.

A parameter that a model refuses or ignores is neither sent nor recorded: providers reject the whole call over the one,
and the other would be a setting without an effect. `remarks` says so before a run. What an unknown model refuses is
read from the words of its server, so that it can be asked without it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from fairtrial.core import registry
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.providers import Provider, known_providers
from fairtrial.providers.reasoning import Reasoning, Thinking, room_for
from fairtrial.providers.sheet import Sheet, sheet_of

SAMPLING = frozenset({"temperature", "top_p"})
PENALTIES = frozenset({"frequency_penalty", "presence_penalty"})
_DEFAULTS = {"top_p": 1, "frequency_penalty": 0, "presence_penalty": 0}  # the models' defaults
_REASONING_TOKENS = 16_384  # completion tokens for a reasoning model, whose reasoning counts as completion
_REASONING_KEYS = ("reasoning_effort", "thinking", "reasoning")  # of `extra`
_ANY = Thinking(levels=("none", "low", "medium", "high"))
# Vendors whose reasoning models are all in the sheet; others (routers, your own server) have to know it themselves.
_VENDORS = frozenset({"openai", "openai-responses", "azure", "anthropic", "google", "vertex", "bedrock", "mistral"})

_REFUSES = re.compile(
    r"not support|unsupported|deprecated|unrecognized|unknown (?:name|parameter|field)|extra inputs|not permitted"
    r"|not enabled|not allowed|only the default|cannot both|may only be set|is invalid",
    re.IGNORECASE,
)
# Our names of parameters, and those that APIs have for them.
_NAMES: dict[str, tuple[str, ...]] = {
    "reasoning": ("reasoning_effort", "reasoning.effort", "reasoningEffort", "thinking", "thinking_budget", "effort"),
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "stop": ("stop", "stop_sequences", "stopSequences"),
    "seed": ("seed", "random_seed"),
    "frequency_penalty": ("frequency_penalty", "frequencyPenalty", "penalty"),
    "presence_penalty": ("presence_penalty", "presencePenalty", "penalty"),
}
_INSTEAD = re.compile(r"use ['\"`](max_completion_tokens)['\"`] instead", re.IGNORECASE)


class Api(msgspec.Struct, frozen=True, kw_only=True):
    """What an API accepts for all its models."""

    refuses: frozenset[str] = frozenset()
    longest: int | None = None  # `max_tokens` to send if the API requires one and none is set
    blank_stops: bool = True  # whether a text at which to stop can consist of blanks
    without_neutral: bool = False  # leave out a `top_p` of 1 and penalties of 0, which have no effect
    endpoint: str = "chat"  # its name in the model sheet


def sheet_behind(spec: TargetSpec) -> Sheet:
    """Return what is known about a target's model, at the endpoint of its API."""
    api = _api_of(spec) or Api()
    return sheet_of(spec.provider, spec.model_behind, api.endpoint)


def _api_of(spec: TargetSpec) -> Api | None:
    """Return what the API behind a target accepts, or None if there is no API."""
    accepts = getattr(registry.load("targets", spec.api or spec.kind), "accepts", None)
    return accepts(spec) if accepts else None


def provider_of(spec: TargetSpec) -> Provider:
    """Return where a target's provider differs from others with the same API."""
    return known_providers().get(spec.provider) or Provider(kind=spec.kind)


def supported_params(
    spec: TargetSpec, params: Mapping[str, Any], *, tools: bool = False, refused: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return the parameters that this target accepts, by their names in suites: these are sent and recorded.

    `refused` are those that its server has refused before.
    """
    api, sheet = _api_of(spec) or Api(), sheet_behind(spec)
    extra: dict[str, Any] = params.get("extra") or {}
    reasoning = None if "reasoning" in refused | sheet.refuses else _reasoning(spec, sheet, params)
    if tools and sheet.tools == "at_rest" and not _has_reasoning(extra):
        reasoning = "none"
    left_out = sheet.refuses | api.refuses | provider_of(spec).refuses | refused | {"reasoning", "extra"}
    if not _takes_sampling(sheet, reasoning, extra):
        left_out |= SAMPLING
    accepted = {name: value for name, value in params.items() if value is not None and name not in left_out}
    if api.longest is not None:
        accepted.setdefault("max_tokens", api.longest)
    accepted = _as_api_wants(api, accepted)
    if sheet.one_of_sampling and "temperature" in accepted:
        accepted.pop("top_p", None)
    if reasoning is not None:
        accepted["reasoning"] = reasoning
    if "max_tokens" in accepted:
        accepted["max_tokens"] = _length(sheet, accepted["max_tokens"], reasoning)
    return {**accepted, "extra": extra} if extra else accepted


def _as_api_wants(api: Api, accepted: dict[str, Any]) -> dict[str, Any]:
    if api.without_neutral:
        accepted = {name: value for name, value in accepted.items() if value != _DEFAULTS.get(name)}
    if api.blank_stops or "stop" not in accepted:
        return accepted
    visible = [text for text in accepted.pop("stop") if text.strip()]
    return {**accepted, "stop": visible} if visible else accepted


def _has_reasoning(extra: Mapping[str, Any]) -> bool:
    return any(key in extra for key in _REASONING_KEYS)


def _reasoning(spec: TargetSpec, sheet: Sheet, params: Mapping[str, Any]) -> Reasoning | None:
    """Return how much to reason, in what the model takes; None if nothing is to be sent."""
    wanted = params.get("reasoning")
    if wanted is None or _has_reasoning(params.get("extra") or {}):
        return None
    how = sheet.reasoning or (None if spec.provider in _VENDORS else _ANY)
    return how.nearest(wanted) if how else None


def _takes_sampling(sheet: Sheet, reasoning: Reasoning | None, extra: Mapping[str, Any]) -> bool:
    if sheet.sampling != "at_rest":
        return sheet.sampling == "taken" and not thinking_of(extra)
    if thinking_of(extra):
        return False
    effort = extra.get("reasoning_effort", reasoning)
    return not sheet.reasons_untold if effort is None else effort in (0, "none")


def _length(sheet: Sheet, tokens: int, reasoning: Reasoning | None) -> int:
    """Return `max_tokens` with room for reasoning, within what the model accepts."""
    wanted = max(sheet.least_tokens, tokens + (0 if reasoning is None else room_for(reasoning)))
    return wanted if sheet.output is None else min(wanted, sheet.output)


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


def remarks(spec: TargetSpec, params: Mapping[str, Any], *, tools: bool = False) -> Iterator[str]:
    """Yield what a model makes of the parameters that were set for it, if it is not what they say."""
    api = _api_of(spec)
    if api is None:
        return
    sheet, sent = sheet_behind(spec), supported_params(spec, params, tools=tools)
    dropped = unsupported_params(spec, params)
    ignored = [name for name in dropped if sheet.sampling == "ignored" and name in SAMPLING]
    refused = [name for name in dropped if name not in ignored]
    if refused:
        yield f"does not accept {' and '.join(refused)}: not sent, and not part of the record"
    if ignored:
        yield f"ignores {' and '.join(ignored)}: not sent, so arms that differ in nothing else are the same"
    wanted, how = params.get("reasoning"), sheet.reasoning
    given = sent.get("reasoning")
    if wanted is not None and how is not None and given is not None and given != wanted and how.tokens is None:
        why = "accepts tools only without reasoning" if given != how.nearest(wanted) else f"takes {how.in_words()}"
        yield f"{why}: `reasoning: {wanted}` is sent as `{given}`"
    if not api.blank_stops and not all(text.strip() for text in params.get("stop") or ()):
        yield "cannot stop at blanks: such texts of `stop` are not sent"
    limit = params.get("max_tokens")
    if limit is not None and sheet.output is not None and limit > sheet.output:
        yield f"writes {sheet.output:,} tokens at most: `max_tokens: {limit}` is sent as that"
    elif limit is not None and limit < sheet.least_tokens:
        yield f"takes no `max_tokens` below {sheet.least_tokens}: {sheet.least_tokens} is sent"


def tokens_needed(spec: TargetSpec, params: Mapping[str, Any], tokens: int) -> int:
    """Return how many completion tokens a reply of `tokens` tokens needs, including reasoning."""
    extra: dict[str, Any] = params.get("extra") or {}
    thinking, sheet = thinking_of(extra), sheet_behind(spec)
    if _reasoning(spec, sheet, params) is not None:
        return tokens  # the room for that is added when it is sent
    if not (thinking or "reasoning_effort" in extra or sheet.reasons_untold):
        return tokens
    return max(_REASONING_TOKENS, int(thinking.get("budget_tokens") or 0) + tokens)


def thinking_of(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return Claude's thinking settings from `extra` if thinking is on; sampling parameters are then rejected."""
    thinking = extra.get("thinking")
    return thinking if isinstance(thinking, dict) and thinking.get("type") not in (None, "disabled") else {}


def refused_parameter(message: str, sent: Collection[str]) -> str:
    """Return which of the parameters that were sent a server refuses by this message; empty if it names none."""
    if not _REFUSES.search(message):
        return ""
    return next((name for name in _NAMES if name in sent and _mentions(message, name)), "")


def _mentions(message: str, name: str) -> bool:
    words = "|".join(map(re.escape, _NAMES[name]))
    return re.search(rf"(?<![\w.])(?:{words})(?![\w])", message, re.IGNORECASE) is not None


def renamed_limit(message: str) -> str:
    """Return the name that a server wants instead of `max_tokens`, if that is why it refuses."""
    found = _INSTEAD.search(message)
    return found[1] if found else ""
