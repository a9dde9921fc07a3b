"""What Gemini, Mistral, Grok, Groq, DeepSeek and OpenRouter refuse; the words are in `refusals.jsonl`.

Whatever is marked as documented is refused by a rule that providers state, for which nobody reported the words.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from benchmarks import strict_claude, strict_openai
from benchmarks.refusals import (
    RESPONSES,
    Call,
    Refusal,
    google_error,
    openai_error,
    place_on_vertex,
    rows_of,
    said,
    words,
)

_MISTRAL_KEYS = words(
    "model messages frequency_penalty guardrails max_tokens metadata n parallel_tool_calls prediction presence_penalty "
    "prompt_cache_key prompt_mode random_seed reasoning_effort response_format safe_prompt stop stream temperature "
    "tool_choice tools top_p"
)
_MISTRAL_MESSAGE = frozenset(("role", "content", "tool_calls", "tool_call_id", "name", "prefix"))
_GEMINI_KEYS = words(
    "contents systemInstruction generationConfig tools toolConfig safetySettings cachedContent labels serviceTier store"
)
_GEMINI_SETTINGS = words(
    "temperature topP topK candidateCount maxOutputTokens stopSequences responseLogprobs logprobs presencePenalty "
    "frequencyPenalty seed responseMimeType responseSchema responseJsonSchema thinkingConfig responseModalities "
    "mediaResolution speechConfig routingConfig audioTimestamp imageConfig enableEnhancedCivicAnswers"
)
_BUDGETS = {"gemini-2.5-flash-lite": (512, 24_576, True), "gemini-2.5-flash": (1, 24_576, True)}
_GEMINI = re.compile(
    r"gemini-(1\.5|2\.0|2\.5|3|3\.[0-9]|4)-(pro|flash-lite|flash-image|flash|argon)(-preview)?(-[\d-]+|-latest)?"
    r"|gemini-(pro|flash|flash-lite)-latest|gemini-embedding-\w+"
)
_ON_GROQ = re.compile(r"llama-3\.1-8b-instant|llama-3\.3-70b-versatile|llama-guard-[\w-]+")
_CAMEL = {"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty", "stop": "stop"}


def camel(value: Any) -> Any:
    """Names in camel case, as Google's own server reads both cases."""
    if isinstance(value, dict):
        return {re.sub(r"_(\w)", lambda m: m[1].upper(), key): camel(item) for key, item in value.items()}
    return [camel(item) for item in value] if isinstance(value, list) else value


# --- Gemini


def gemini(call: Call) -> Refusal | None:
    """What `generateContent` says to a request that it refuses, at home and on Vertex."""
    call.body = body = camel(call.body)
    settings = body.get("generationConfig", {})
    for place, given, known in (
        ("", body, _GEMINI_KEYS),
        (" at 'generation_config'", settings, _GEMINI_SETTINGS),
    ):
        for key in given:
            if key not in known:
                return _unknown_field(call, f'"{key}"{place}')
    if refused := _model_of_gemini(call):
        return refused
    found = re.match(r"gemini-(\d(?:\.\d)?)-(pro|flash-lite|flash-image|flash|argon)", call.model)
    if not found:
        thinking = settings.get("thinkingConfig") or {}
        both = "thinkingLevel" in thinking and "thinkingBudget" in thinking
        return said("budget and level", call) if both and call.model.startswith("gemini-") else None
    release, tier = float(found[1]), found[2]
    for refused in (
        _thinking(call, release, tier, settings.get("thinkingConfig") or {}),
        _settings(call, release, settings),
        _tools(call, release, settings),
        _last(call, release, tier),
    ):
        if refused:
            return refused
    return None


def _unknown_field(call: Call, what: str) -> Refusal:
    refused = said("unknown field of Gemini", call, value=what)
    violation = {"description": refused.body["error"]["message"]}
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]
    return Refusal(refused.status, {"error": {**refused.body["error"], "details": details}})


def _model_of_gemini(call: Call) -> Refusal | None:
    model, version = call.model, re.search(r"/(v\d\w*)/", call.path)
    known = not model.startswith("gem") or _GEMINI.fullmatch(model) or model.startswith("gemma-")
    if call.provider == "vertex":
        return None if known else said("unknown on Vertex", call, place=place_on_vertex(call))
    stable = version and version[1] == "v1"  # it has no aliases
    if not known or (stable and model.endswith("-latest")):
        return said("unknown Gemini", call, version=version[1] if version else "v1beta")
    if call.account("new-user") and model.startswith("gemini-2.5"):
        return said("closed to new users", call)
    return None


def never_off(model: str) -> bool:
    """Whether a Gemini always thinks."""
    return bool(re.match(r"gemini-(2\.5-pro|3(\.1)?-pro|3\.[78]|4)", model))


def _thinking(call: Call, release: float, tier: str, thinking: dict[str, Any]) -> Refusal | None:
    if not thinking:
        return None
    level, budget = thinking.get("thinkingLevel"), thinking.get("thinkingBudget")
    if release < 2.5 or "image" in tier:
        return said("no thinking", call)
    if budget == 0 and never_off(call.model) and not (call.provider == "vertex" and release == 3.1):
        return said("budget of nothing", call)
    if release < 3:
        return said("no levels", call) if level is not None else _budget(call, budget)
    if level is not None and budget is not None:
        return said("budget and level", call)
    levels = ["LOW", "HIGH"] + (["MEDIUM"] if (release, tier) != (3, "pro") else [])
    levels += ["MINIMAL"] if "flash" in tier and release <= 3.6 else []
    if level is not None and level.upper() not in levels:
        return said("level of Gemini", call, value=level.upper())
    return None


def _budget(call: Call, budget: int | None) -> Refusal | None:
    fewest, most, off = next((v for k, v in _BUDGETS.items() if call.model.startswith(k)), (128, 32_768, False))
    if budget is None or fewest <= budget <= most or (budget == 0 and off) or budget == -1:
        return None
    return Refusal(400, google_error(f"The thinking budget ({budget}) is invalid."))  # documented


def _settings(call: Call, release: float, settings: dict[str, Any]) -> Refusal | None:
    on_vertex = call.provider == "vertex"
    count = settings.get("candidateCount") or 1
    if count > 1 and on_vertex and release < 2:
        return said("candidates of 1.5", call, value=count)
    if count > 1 and not on_vertex and release >= 3:
        return said("candidates", call)
    if release < (3 if on_vertex else 2.5):
        return None
    # All of 2.5: github.com/vercel/ai/issues/8943; one of 0 is accepted: github.com/google-gemini/cookbook/issues/1290.
    if settings.get("presencePenalty") or settings.get("frequencyPenalty"):
        return said("penalties", call)
    logprobs = "logprobs on Vertex" if on_vertex else "logprobs"
    return said(logprobs, call) if settings.get("responseLogprobs") else None


def _tools(call: Call, release: float, settings: dict[str, Any]) -> Refusal | None:
    tools = call.body.get("tools") or ()
    functions = any("functionDeclarations" in tool for tool in tools)
    built_in = any(set(tool) - {"functionDeclarations"} for tool in tools)
    if release >= 3 or not tools:
        return None
    if settings.get("responseMimeType") == "application/json":
        return said("functions and JSON" if functions else "built-in tool and JSON", call)
    return said("built-in tool and functions", call) if functions and built_in else None


def _last(call: Call, release: float, tier: str) -> Refusal | None:
    last = (call.body.get("contents") or [{}])[-1]
    if last.get("role") != "model" or not (release >= 3.6 or (release, tier) == (3.5, "flash-lite")):
        return None
    answers = "functionResponse" in (last.get("parts") or [{}])[-1]
    return None if answers else said("last from the model", call)


# --- Mistral


def mistral(call: Call) -> Refusal | None:
    """What Mistral says to a request that it refuses."""
    body = call.body
    for key, value in body.items():
        if key not in _MISTRAL_KEYS:
            return _extra(["body", key], value)
    for place, message in enumerate(body["messages"]):
        for key, value in message.items():
            if key not in _MISTRAL_MESSAGE:
                return _extra(["body", "messages", place, message["role"], key], value)
        if message["role"] == "tool" and not message.get("tool_call_id"):  # documented
            error = {"object": "error", "message": "tool_call_id is missing", "type": "invalid_request_message"}
            return Refusal(400, error)
    if body.get("prompt_mode") == "reasoning" and not call.model.startswith("magistral"):
        return said("prompt mode", call)
    effort = body.get("reasoning_effort")
    takes = re.match(r"magistral|mistral-(small-(2603|latest)|medium-(3[-.]5|latest)|large-4)|[^-]*$", call.model)
    if effort is None or (takes and effort in ("none", "high")):
        return None
    refused = said("effort of Mistral", call, value=effort)
    if not takes:
        refused.body["message"] = refused.body["message"].partition(" Must be")[0]
    return refused


def _extra(loc: list[Any], value: Any) -> Refusal:
    (row,) = rows_of("unknown key of Mistral")  # the rest of its words was not reported
    detail = {"type": row.error_type, "loc": loc, "msg": "Extra inputs are not permitted", "input": value}
    return Refusal(row.status, {"detail": [detail]})


# --- others with OpenAI's format


def grok(call: Call) -> Refusal | None:
    """xAI: the newer models refuse penalties and `stop`, and each has efforts of its own."""
    body, model = call.body, call.model
    effort = body.get("reasoning_effort") or (body.get("reasoning") or {}).get("effort")
    for name, shown in _CAMEL.items():
        if name in body and model.startswith("grok-3-mini"):
            return said("parameter of older Grok", call, param=shown)
        if name in body and re.match(r"grok-(4|build)", model):
            return said("parameter of Grok", call, param=shown)
    if effort is not None and effort not in _grok_efforts(model):
        return said("parameter of Grok", call, param="reasoningEffort")
    return _keys(call)


def _grok_efforts(model: str) -> tuple[str, ...]:
    for name, efforts in (
        ("grok-3-mini", ("low", "high")),
        ("grok-4.3", ("none", "low", "medium", "high")),
        ("grok-4.5", ("low", "medium", "high")),
        ("grok-4.6", ("low", "medium", "high", "xhigh")),
        ("grok-4.7", ("low", "medium", "high", "xhigh")),
    ):
        if model.startswith(name):
            return efforts
    return ()


def groq(call: Call) -> Refusal | None:
    body, model = call.body, call.model
    if model.startswith(("qwen-qwq-32b", "deepseek-r1-distill-qwen")):
        return said("decommissioned", call)
    if model.startswith("llama-") and not _ON_GROQ.fullmatch(model):
        return said("unknown on Groq", call)
    effort = body.get("reasoning_effort", "medium")
    if effort not in ("none", "default", "low", "medium", "high"):
        return said("effort of Groq", call)
    if "gpt-oss" in model and effort not in ("low", "medium", "high"):  # documented
        message = "reasoning_effort must be one of `low`, `medium`, or `high`"
        return Refusal(400, openai_error(message, "reasoning_effort", None))
    return _keys(call)


def _keys(call: Call) -> Refusal | None:
    """They take what chat completions and Responses take."""
    plain = {key: value for key, value in call.body.items() if key not in ("reasoning_effort", "reasoning", "model")}
    check = strict_openai.responses if call.endpoint == RESPONSES else strict_openai.chat
    return check(Call(call.provider, call.endpoint, "m", plain))


def deepseek(call: Call) -> Refusal | None:
    """DeepSeek thinks unless it is told not to, and wants its thoughts back."""
    body = call.body
    if call.endpoint == RESPONSES:
        return _interleaved(call)
    if (body.get("response_format") or {}).get("type") == "json_schema":
        return said("schema of DeepSeek", call)
    off = (body.get("thinking") or {}).get("type") == "disabled" or "v4" not in call.model
    for message in body.get("messages", ()):
        if message.get("tool_calls") and not message.get("reasoning_content") and not off:
            return said("reasoning must come back", call)
    return None


def _interleaved(call: Call) -> Refusal | None:
    """The outputs of calls come right after the calls."""
    waiting: list[str] = []
    said_so_far = call.body.get("input")
    for item in said_so_far if isinstance(said_so_far, list) else ():
        if item.get("type") == "function_call":
            waiting.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            waiting = [one for one in waiting if one != item["call_id"]]
        elif waiting and item.get("type") != "reasoning":
            break
    return said("calls between texts", call, key=waiting[0]) if waiting else None


def openrouter(call: Call) -> Refusal | None:
    """A router refuses what none of the servers behind it takes, and hands on what these say."""
    body, model = call.body, call.model
    vendor, _, name = model.partition("/")
    if body.get("tools") and name == "without-tools":  # the reports name no models
        return said("no tools on OpenRouter", call)
    if body.get("tools") and name == "with-some-tools":
        return said("some tools on OpenRouter", call, tool=body["tools"][0]["function"]["name"])
    reasoning = body.get("reasoning") or {}
    off = (
        reasoning.get("effort") == "none" or reasoning.get("enabled") is False or body.get("reasoning_effort") == "none"
    )
    always = {"openai": strict_openai.always_reasons, "anthropic": strict_claude.always_thinks, "google": never_off}
    if off and vendor in always and always[vendor](name.replace("~", "")):
        return said("reasoning is mandatory", call)
    limit = body.get("max_tokens") or body.get("max_completion_tokens")
    if vendor == "openai" and limit and limit < 16:
        upstream = strict_openai.responses(Call("openai", RESPONSES, name, {"model": name, "max_output_tokens": limit}))
        return _handed_on(call, upstream) if upstream else None
    return None


def _handed_on(call: Call, upstream: Refusal) -> Refusal:
    refused = said("upstream", call)
    metadata = {"raw": json.dumps(upstream.body), "provider_name": "Azure"}
    return Refusal(refused.status, {"error": {**refused.body["error"], "metadata": metadata}})


# --- signatures


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
