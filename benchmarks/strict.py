"""What the real APIs refuse, with their status, their codes and their words.

Written from what providers document and people report, not from fairtrial's own table of models: the one tests the
other. `refusal` says what a provider would answer instead of asking the model; None means that the call is fine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Refusal = tuple[int, dict[str, Any]]

_CHAT_KEYS = (
    "model messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens "
    "metadata modalities n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention "
    "reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options temperature "
    "tool_choice tools top_logprobs top_p user verbosity web_search_options"
)
_MESSAGES_KEYS = (
    "model messages max_tokens cache_control container context_management inference_geo mcp_servers metadata "
    "output_config service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k "
    "top_p"
)
_SAMPLING = ("temperature", "top_p")
_PENALTIES = ("frequency_penalty", "presence_penalty")
_RANGES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength")


def refusal(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Refusal | None:
    """What the API at this path would say to such a request, if it refuses it; names of headers in lower case."""
    if path.partition("?")[0].endswith("/messages"):
        return _of_messages(headers, body)
    return _of_chat(body)


# --- OpenAI's chat completions


def _of_chat(body: dict[str, Any]) -> Refusal | None:
    for key in body:
        if key not in _CHAT_KEYS.split():
            return _chat(f"Unrecognized request argument supplied: {key}", None, None)
    model = str(body.get("model", "")).removeprefix("ft:")
    if "stream_options" in body and not body.get("stream"):
        return _chat("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options", None)
    refused = _bad_chat_schema(body)
    if refused:
        return refused
    if not re.match(r"o\d|gpt-[5-9]", model) or "chat" in model:
        if "reasoning_effort" in body:
            return _chat("Unrecognized request argument supplied: reasoning_effort", None, None)
        return None
    return _of_reasoning(model, body)


def _of_reasoning(model: str, body: dict[str, Any]) -> Refusal | None:
    """Models that think before they answer."""
    if "max_tokens" in body:
        hint = "Use 'max_completion_tokens' instead."
        return _unsupported("max_tokens", f" {hint}")
    levels, default = _efforts(model)
    effort = body.get("reasoning_effort", default)
    if effort not in levels:
        shown = ", ".join(f"'{level}'" for level in levels)
        return _chat(
            f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model. "
            f"Supported values are: {shown}.",
            "reasoning_effort",
            "unsupported_value",
        )
    if model.startswith("gpt-5.6-luna") and body.get("tools") and effort != "none":
        return _chat(
            "Function tools with reasoning_effort are not supported for gpt-5.6-luna in /v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            "tools",
            None,
        )
    if re.match(r"gpt-5(?!\.)", model) and body.get("temperature", 1) != 1:
        return _chat(
            f"Unsupported value: 'temperature' does not support {body['temperature']:g} with this model. "
            "Only the default (1) value is supported.",
            "temperature",
            "unsupported_value",
        )
    only_default = ("temperature",) if re.match(r"gpt-5(?!\.)", model) else ()
    sampling = () if effort == "none" else _SAMPLING
    stop = ("stop",) if re.match(r"o[34]", model) else ()
    for name in (*sampling, *_PENALTIES, *stop):
        if name in body and name not in only_default:
            return _unsupported(name)
    return None


def _efforts(model: str) -> tuple[tuple[str, ...], str]:
    """How hard a model can be told to think, and how hard it thinks untold."""
    if model.startswith("o"):
        return ("low", "medium", "high"), "medium"
    if re.match(r"gpt-5(?!\.)", model):
        return ("minimal", "low", "medium", "high"), "medium"
    if re.match(r"gpt-5\.[1-4]", model):
        return ("none", "low", "medium", "high", "xhigh"), "none"
    return ("none", "low", "medium", "high", "xhigh", "max"), "medium"


def _bad_chat_schema(body: dict[str, Any]) -> Refusal | None:
    shape = (body.get("response_format") or {}).get("json_schema")
    if not shape or not shape.get("strict"):
        return None
    for value in _objects(shape["schema"]):
        what = f"Invalid schema for response_format '{shape.get('name')}': In context=(), "
        if value.get("additionalProperties") is not False:
            what += "'additionalProperties' is required to be supplied and to be false."
            return _chat(what, "response_format", None)
        if sorted(value.get("required", ())) != sorted(value.get("properties", ())):
            what += "'required' is required to be supplied and to be an array including every key in properties."
            return _chat(what, "response_format", None)
    return None


def _unsupported(name: str, hint: str = "") -> Refusal:
    text = f"Unsupported parameter: '{name}' is not supported with this model.{hint}"
    return _chat(text, name, "unsupported_parameter")


def _chat(message: str, param: str | None, code: str | None) -> Refusal:
    return 400, {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


# --- Anthropic's Messages


def _of_messages(headers: Mapping[str, str], body: dict[str, Any]) -> Refusal | None:
    version = headers.get("anthropic-version")
    if version is None:
        return _messages("anthropic-version: header is required")
    for key in body:
        if key not in _MESSAGES_KEYS.split() or (version >= "2026-10-21" and key in (*_SAMPLING, "top_k")):
            return _messages(f"{key}: Extra inputs are not permitted")
    if "max_tokens" not in body:
        return _messages("max_tokens: Field required")
    family, release = _claude(str(body.get("model", "")))
    return (
        _bad_sampling(family, release, body)
        or _bad_thinking(family, release, body)
        or _bad_format(family, release, body)
    )


def _claude(model: str) -> tuple[str, float]:
    """A Claude's family and release: `claude-opus-4-7` is opus, 4.7; release 0 is none of them."""
    old = re.match(r"claude-(\d)(?:[-.](\d))?-(opus|sonnet|haiku)", model)
    if old:
        return old[3], float(f"{old[1]}.{old[2] or 0}")
    found = re.match(r"claude-(opus|sonnet|haiku)-(\d)(?:[-.](\d)(?!\d))?", model)
    if found:
        return found[1], float(f"{found[2]}.{found[3] or 0}")
    newest = re.match(r"claude-(fable|mythos)", model)
    return (newest[1], 5.0) if newest else ("", 0.0)


def _bad_sampling(family: str, release: float, body: dict[str, Any]) -> Refusal | None:
    given = [name for name in (*_SAMPLING, "top_k") if name in body]
    if release >= 5 or (family == "opus" and release >= 4.7):
        default_is_fine = family == "sonnet" and release == 5
        wrong = [name for name in given if not (default_is_fine and body[name] == 1)]
        return _messages(f"`{wrong[0]}` is deprecated for this model.") if wrong else None
    if release >= 4.1 and {*_SAMPLING} <= {*given}:
        return _messages("`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
    return None


def _bad_thinking(family: str, release: float, body: dict[str, Any]) -> Refusal | None:
    thinking = body.get("thinking") or {}
    kind, budget = thinking.get("type"), thinking.get("budget_tokens", 0)
    forced = (body.get("tool_choice") or {}).get("type") in ("tool", "any")
    adaptive = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
    if release >= 5.5 and kind == "disabled":
        return _messages(f'"thinking.type.disabled" is not supported for this model. {adaptive}')
    if release >= 5.5 and forced:
        return _messages("tool_choice: forced tool use is not supported for this model.")
    if forced and kind in ("enabled", "adaptive"):
        return _messages("Thinking may not be enabled when tool_choice forces tool use.")
    if kind != "enabled":
        return None
    if release >= 5 or (family == "opus" and release >= 4.7):
        return _messages(f'"thinking.type.enabled" is not supported for this model. {adaptive}')
    if budget < 1024:
        return _messages("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if budget >= body["max_tokens"]:
        return _messages("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if body.get("temperature", 1) != 1:
        return _messages("`temperature` may only be set to 1 when thinking is enabled.")
    return None


def _bad_format(family: str, release: float, body: dict[str, Any]) -> Refusal | None:
    shape = (body.get("output_config") or {}).get("format")
    if shape is None:
        return None
    if 0 < release < 4.5:
        return _messages("output_config.format: structured outputs are not supported for this model.")
    for value in _parts(shape["schema"]):
        ranges = [name for name in _RANGES if name in value]
        if ranges:
            return _messages(
                f"output_config.format.schema: For '{value.get('type')}' type, properties {', '.join(ranges)} "
                "are not supported"
            )
    for value in _objects(shape["schema"]):
        if value.get("additionalProperties") is not False:
            return _messages(
                "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
            )
    return None


def _messages(message: str) -> Refusal:
    return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


# --- both


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all schemas in it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for value in schema.get("properties", {}).values():
        yield from _parts(value)
    yield from _parts(schema.get("items"))


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    return (part for part in _parts(schema) if part.get("type") == "object")
