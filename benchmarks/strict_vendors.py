"""What the other APIs refuse: OpenAI's Responses, Gemini, Converse, Mistral. Written from what providers document."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from benchmarks import strict

Refusal = strict.Refusal

_RESPONSES_KEYS = (
    "background conversation include input instructions max_output_tokens max_tool_calls metadata model "
    "parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning "
    "safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p "
    "truncation user"
)
_MISTRAL_KEYS = (
    "model messages frequency_penalty guardrails max_tokens metadata n parallel_tool_calls prediction presence_penalty "
    "prompt_cache_key prompt_mode random_seed reasoning_effort response_format safe_prompt stop stream temperature "
    "tool_choice tools top_p"
)
_GEMINI_KEYS = (
    "contents systemInstruction generationConfig tools toolConfig safetySettings cachedContent labels serviceTier store"
)
_GEMINI_SETTINGS = (
    "temperature topP topK candidateCount maxOutputTokens stopSequences responseLogprobs logprobs presencePenalty "
    "frequencyPenalty seed responseMimeType responseSchema responseJsonSchema thinkingConfig responseModalities "
    "mediaResolution speechConfig routingConfig audioTimestamp imageConfig enableEnhancedCivicAnswers"
)
_CONVERSE_KEYS = (
    "messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields outputConfig "
    "additionalModelResponseFieldPaths promptVariables requestMetadata performanceConfig serviceTier"
)
_BUDGETS = {"gemini-2.5-flash-lite": (512, 24_576, True), "gemini-2.5-flash": (1, 24_576, True)}


def camel(value: Any) -> Any:
    """Names in camel case, as Google's own server reads both cases."""
    if isinstance(value, dict):
        return {re.sub(r"_(\w)", lambda m: m[1].upper(), key): camel(item) for key, item in value.items()}
    return [camel(item) for item in value] if isinstance(value, list) else value


def responses(body: dict[str, Any]) -> Refusal | None:
    for key in body:
        if key not in _RESPONSES_KEYS.split():
            return 400, _openai_error(f"Unknown parameter: '{key}'.", key, "unknown_parameter")
    chat: dict[str, Any] = {key: body[key] for key in ("model", "temperature", "top_p") if key in body}
    if effort := (body.get("reasoning") or {}).get("effort"):
        chat["reasoning_effort"] = effort
    shape = (body.get("text") or {}).get("format")
    if shape:
        chat["response_format"] = {"json_schema": shape}
    refused = strict.refusal("/v1/chat/completions", {}, {"messages": [], **chat})
    if refused and "reasoning_effort" in str(refused[1]["error"]["message"]):
        return 400, _openai_error(
            refused[1]["error"]["message"].replace("reasoning_effort", "reasoning.effort"), None, None
        )
    return refused


def _openai_error(message: str, param: str | None, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def groq(body: dict[str, Any]) -> Refusal | None:
    effort = body.get("reasoning_effort", "medium")
    if effort not in ("low", "medium", "high"):
        return 400, _openai_error(
            "reasoning_effort must be one of `low`, `medium`, or `high`", "reasoning_effort", None
        )
    plain = {key: value for key, value in body.items() if key != "reasoning_effort"}
    return strict.refusal("/chat/completions", {}, {**plain, "model": "m"})


def mistral(body: dict[str, Any]) -> Refusal | None:
    for key, value in body.items():
        if key not in _MISTRAL_KEYS.split():
            detail = {"type": "extra_forbidden", "loc": ["body", key], "msg": "Extra inputs are not permitted"}
            return 422, {"detail": [{**detail, "input": value}]}
    for message in body["messages"]:
        if message["role"] == "tool" and not message.get("tool_call_id"):
            return 400, {"object": "error", "message": "tool_call_id is missing", "type": "invalid_request_message"}
    return None


def gemini(path: str, body: dict[str, Any]) -> Refusal | None:
    body = camel(body)
    model = re.search(r"/models/([^:]+):", path)[1]  # type: ignore[index]
    for place, given, known in (
        ("", body, _GEMINI_KEYS),
        (".generation_config", body.get("generationConfig", {}), _GEMINI_SETTINGS),
    ):
        for key in given:
            if key not in known.split():
                where = f" at '{place[1:]}'" if place else ""
                return _gemini(f'Invalid JSON payload received. Unknown name "{key}"{where}: Cannot find field.')
    if "/v1/models/" in path and model.endswith("-latest"):
        return 404, {
            "error": {"code": 404, "message": f"models/{model} is not found for API version v1", "status": "NOT_FOUND"}
        }
    if body["contents"][-1].get("role") == "model" and model.startswith("gemini-3.6"):
        return _gemini("Requests ending with a model turn are not supported.")
    return _bad_gemini_thinking(model, body.get("generationConfig", {}).get("thinkingConfig"))


def _bad_gemini_thinking(model: str, thinking: dict[str, Any] | None) -> Refusal | None:
    if not thinking:
        return None
    level, budget = thinking.get("thinkingLevel"), thinking.get("thinkingBudget")
    if model.startswith(("gemini-1", "gemini-2.0")):
        return _gemini("Thinking is not enabled for this model.")
    if model.startswith("gemini-2.5"):
        if level is not None:
            return _gemini("Thinking level is not supported for this model.")
        fewest, most, off = next((v for k, v in _BUDGETS.items() if model.startswith(k)), (128, 32_768, False))
        if budget is not None and not (fewest <= budget <= most or (budget == 0 and off) or budget == -1):
            return _gemini(f"The thinking budget ({budget}) is invalid.")
        return None
    if level is not None and budget is not None:
        return _gemini("You can only set only one of thinking budget and thinking level.")
    levels = ["medium", "low", "high"]
    if "flash" in model and not model.startswith("gemini-3.7"):
        levels.append("minimal")
    if level is not None and level.lower() not in levels:
        return _gemini(
            f"'{level.lower()}' is not a supported thinking level for this model. Allowed values are: {', '.join(levels)}."
        )
    return None


def _gemini(message: str) -> Refusal:
    return 400, {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


def converse(path: str, body: dict[str, Any]) -> Refusal | None:
    for key in body:
        if key not in _CONVERSE_KEYS.split():
            return 400, {"message": f"Unknown parameter in input: {key}"}
    config, more = body.get("inferenceConfig", {}), body.get("additionalModelRequestFields", {})
    for key in config:
        if key not in ("maxTokens", "temperature", "topP", "stopSequences"):
            return 400, {"message": f"Unknown parameter in inferenceConfig: {key}"}
    model = path.split("/")[2]
    if "claude" not in model:
        return None
    name = model[model.index("claude") :]
    as_messages = {"model": name, "messages": [], "max_tokens": config.get("maxTokens", 4096), **more}
    as_messages |= {
        ours: config[theirs] for ours, theirs in (("temperature", "temperature"), ("top_p", "topP")) if theirs in config
    }
    refused = strict.refusal("/v1/messages", {"anthropic-version": "2023-06-01"}, as_messages)
    return (400, {"message": refused[1]["error"]["message"]}) if refused else None


def signature_is_right(url: str, headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Whether a request is signed as AWS wants it (Signature Version 4); written from its documentation."""
    found = re.match(
        r"AWS4-HMAC-SHA256 Credential=[^/]+/(\d+)/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)",
        headers.get("authorization", ""),
    )
    if not found:
        return False
    day, region, service, names, signature = found.groups()
    parts = urlsplit(url)
    canonical = "\n".join(
        (
            "POST",
            quote(parts.path, safe="/~"),
            parts.query,
            *(f"{name}:{headers[name].strip()}" for name in names.split(";")),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(("AWS4-HMAC-SHA256", headers["x-amz-date"], scope, digest))
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == signature and service == "bedrock"
