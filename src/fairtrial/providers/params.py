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

from fairtrial.core.answer import Request
from fairtrial.core.suite import TargetSpec

# Sent with every call to Messages, and not to be raised lightly: from 2026-10-21 on the API refuses temperature, top_p
# and top_k on every model, even at their defaults, while 2023-06-01 still takes them on models that know them.
ANTHROPIC_VERSION = "2023-06-01"

REPLY_TOOL = "reply"  # through which an older Claude answers in a given form

_SAMPLING = frozenset({"temperature", "top_p"})
_PENALTIES = frozenset({"frequency_penalty", "presence_penalty"})
_SAYS_NOTHING = {"top_p": 1, "frequency_penalty": 0, "presence_penalty": 0}  # what a model does untold
_LONGEST = 2048  # Messages wants to be told how long an answer may be
_ROOM_TO_THINK = 16_384  # completion tokens of a model that thinks: its thoughts count as completion
_MESSAGES_NAMES = {"max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop": "stop_sequences"}


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model's parameters."""

    refuses: frozenset[str] = frozenset()
    one_of_sampling: bool = False  # temperature or top_p, not both
    effort: str | None = None  # its default; it takes sampling parameters only at effort `none`
    tools_without_effort: bool = False  # it takes tools only at effort `none`
    thinks: bool = False
    long_name: bool = False  # it knows `max_tokens` only as `max_completion_tokens`
    json_format: bool = False  # Messages: it takes a schema as `output_config.format`, else as a tool


_OPENAI = Model(thinks=True, long_name=True)
_CLAUDE = Model(refuses=_PENALTIES | {"seed"})
_MODELS: tuple[tuple[str, Model], ...] = (
    (r"gpt-[5-9].*chat", Model(long_name=True)),
    (r"o[34]", replace(_OPENAI, refuses=_SAMPLING | _PENALTIES | {"stop"})),
    (r"o\d|gpt-5(?!\.)", replace(_OPENAI, refuses=_SAMPLING | _PENALTIES)),
    (r"gpt-5\.[1-4](?!\d)", replace(_OPENAI, refuses=_PENALTIES, effort="none")),
    (
        r"gpt-5\.6-luna",
        replace(_OPENAI, refuses=_PENALTIES, effort="medium", tools_without_effort=True),
    ),
    (r"gpt-[5-9]", replace(_OPENAI, refuses=_PENALTIES, effort="medium")),
    (r"claude-(?:v?[0-3]|instant)", _CLAUDE),
    (r"claude-\w+-4(?:[-.]0)?(?:$|[-.@:](?:\d{8}|latest))", _CLAUDE),
    (r"claude-\w+-4[-.]1(?!\d)", replace(_CLAUDE, one_of_sampling=True)),
    (r"claude-\w+-4[-.][2-6](?!\d)", replace(_CLAUDE, one_of_sampling=True, json_format=True)),
    (r"claude-", replace(_CLAUDE, refuses=_CLAUDE.refuses | _SAMPLING, thinks=True, json_format=True)),
    (r"deepseek-r|gemini-(?:2\.5|[3-9])|grok-(?:3-mini|[4-9])|qwq|magistral", Model(thinks=True)),
)
_LACKING = {"anthropic_api": _PENALTIES | {"seed"}}  # what a whole API does not know


@lru_cache(maxsize=256)
def model_of(name: str) -> Model:
    """What is known of the model of this name; a router's or a fine-tune's name has the model's own in it."""
    plain = name.rsplit("/", 1)[-1].lower().removeprefix("ft:")
    return next((model for pattern, model in _MODELS if re.match(pattern, plain)), Model())


def taken(spec: TargetSpec, params: Mapping[str, Any], *, tools: bool = False) -> dict[str, Any]:
    """Those of the parameters that this target takes, by the names that suites use: what is sent and recorded."""
    api, model = spec.api or spec.kind, model_of(spec.model)
    extra: dict[str, Any] = params.get("extra") or {}
    if tools and model.tools_without_effort and "reasoning_effort" not in extra:
        extra = {**extra, "reasoning_effort": "none"}
    left_out = model.refuses | _LACKING.get(api, frozenset())
    if _thinking(extra) or (model.effort is not None and extra.get("reasoning_effort", model.effort) != "none"):
        left_out |= _SAMPLING
    found = {
        name: value for name, value in params.items() if value is not None and name not in left_out and name != "extra"
    }
    if api == "anthropic_api":
        found.setdefault("max_tokens", _LONGEST)
    if found.get("top_p") is not None and (
        (model.one_of_sampling and "temperature" in found) or (api == "anthropic_api" and found["top_p"] == 1)
    ):
        del found["top_p"]
    return {**found, "extra": extra} if extra else found


def not_taken(spec: TargetSpec, params: Mapping[str, Any]) -> list[str]:
    """Which of the parameters a model behind an API does not take, though they would say something."""
    if (spec.api or spec.kind) not in ("openai_api", "anthropic_api"):
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
    thinking = _thinking(extra)
    if not (thinking or "reasoning_effort" in extra or model_of(spec.model).thinks):
        return tokens
    return max(_ROOM_TO_THINK, int(thinking.get("budget_tokens") or 0) + tokens)


def openai_params(spec: TargetSpec, request: Request, *, tools: bool = False) -> dict[str, Any]:
    """For chat completions; `extra` as it is."""
    found = taken(spec, request.params, tools=tools)
    extra = found.pop("extra", {})
    # OpenAI itself has renamed this one; others have not followed, and routers (`openai/gpt-5`) speak for all models.
    renamed = spec.provider == "openai" or (model_of(spec.model).long_name and "/" not in spec.model)
    if "max_tokens" in found and renamed:
        found["max_completion_tokens"] = found.pop("max_tokens")
    return {**found, **extra}


def anthropic_params(spec: TargetSpec, request: Request) -> dict[str, Any]:
    """For Messages; `extra` as it is. A schema goes with them."""
    found = taken(spec, request.params)
    extra = found.pop("extra", {})
    body: dict[str, Any] = {_MESSAGES_NAMES[name]: value for name, value in found.items() if name in _MESSAGES_NAMES}
    body |= extra
    if request.schema is None:
        return body
    if model_of(spec.model).json_format:
        shape = {"type": "json_schema", "schema": without_ranges(request.schema)}
        return {**body, "output_config": {**body.get("output_config", {}), "format": shape}}
    tool = {"name": REPLY_TOOL, "description": "The reply.", "input_schema": request.schema}
    choice = {"type": "auto"} if _thinking(extra) else {"type": "tool", "name": REPLY_TOOL}  # thinking forbids force
    return {**body, "tools": [tool], "tool_choice": choice}


def without_ranges(schema: Any) -> Any:
    """A schema without what structured outputs do not take; ranges are checked by whoever reads the reply."""
    if isinstance(schema, list):
        return [without_ranges(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: value for key, value in schema.items() if key not in _RANGES}
    for key in ("items", "anyOf"):
        if key in found:
            found[key] = without_ranges(found[key])
    if "properties" in found:
        found["properties"] = {name: without_ranges(value) for name, value in found["properties"].items()}
    return found


_RANGES = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    }
)


def _thinking(extra: Mapping[str, Any]) -> dict[str, Any]:
    """What `extra` says about a Claude's thinking, where it is on: then sampling parameters are refused."""
    given = extra.get("thinking")
    return given if isinstance(given, dict) and given.get("type") not in (None, "disabled") else {}
