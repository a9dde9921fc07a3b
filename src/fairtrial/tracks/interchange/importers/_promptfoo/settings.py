"""The `config` of a provider as the `params` of a target."""

from __future__ import annotations

import re
from typing import Any

from fairtrial.tracks.interchange.importers._promptfoo.conversion import Conversion, dict_of
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX, MissingFileError, resolve
from fairtrial.tracks.interchange.importers._promptfoo.prompts import JAVASCRIPT

PARAMS = {
    "temperature": "temperature", "max_tokens": "max_tokens", "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens", "maxOutputTokens": "max_tokens", "maxTokens": "max_tokens",
    "max_gen_len": "max_tokens", "maxTokenCount": "max_tokens", "num_predict": "max_tokens",
    "max_new_tokens": "max_tokens", "max_tokens_to_sample": "max_tokens", "top_p": "top_p", "topP": "top_p",
    "frequency_penalty": "frequency_penalty", "frequencyPenalty": "frequency_penalty",
    "presence_penalty": "presence_penalty", "presencePenalty": "presence_penalty", "seed": "seed",
    "random_seed": "seed", "stop": "stop", "stop_sequences": "stop", "stopSequences": "stop",
}  # fmt: skip
# What an API takes under the same name.
EXTRA = {
    "response_format", "tools", "tool_choice", "functions", "function_call", "reasoning_effort", "reasoning",
    "thinking", "top_k", "logit_bias", "logprobs", "top_logprobs", "verbosity", "parallel_tool_calls", "service_tier",
    "user", "metadata", "store", "search_parameters", "web_search_options", "modalities", "n", "effort",
    "prompt_cache_key", "safe_prompt", "num_ctx", "min_p", "repetition_penalty", "transforms", "route", "provider",
    "models", "safetySettings", "instructions", "previous_response_id", "truncation", "text", "include", "background",
    "max_tool_calls", "prompt", "search_domain_filter", "search_recency_filter", "return_related_questions",
    "return_citations", "return_images", "search_mode", "search_context_size", "image_domain_filter", "beta",
    "cache_control", "output_config", "output_format", "data_sources", "dataSources", "reasoning_format", "min_tokens",
    "include_reasoning", "compound_custom", "search_settings", "documents", "enable_thinking", "thinking_budget",
    "system", "best_of", "prediction", "audio", "mirostat", "think", "keep_alive", "format", "plugins", "debug",
    "typical_p", "top_a", "disable_search", "enable_search_classifier", "prompt_cache_retention", "safety_identifier",
    "extra_body", "mcp_servers", "context_management", "stream_options", "max_turns", "agent_count", "deferred",
    "top_k_return_sequences", "do_sample", "use_cache", "wait_for_model", "return_full_text", "chat_template_kwargs",
    "toolChoice", "toolConfig", "systemInstruction", "responseSchema", "responseMimeType", "response_schema",
    "response_mime_type", "thinkingConfig", "topK", "system_prompt", "prompt_mode", "guardrailIdentifier",
    "guardrailVersion", "trace", "performanceConfig", "serviceTier", "additionalModelRequestFields",
    "prompt_cache_options", "max_length", "min_length",
    "prompt_template", "reasoningConfig", "anthropic_version", "speed", "container", "inference_geo",
}  # fmt: skip
CALLBACKS = ("functionToolCallbacks", "functionCallbacks", "functions_callbacks", "toolCallbacks")
# What only matters to promptfoo's own clients: how they reach a vendor, retry, and show what came back.
IGNORED = {
    "apiKey", "apiKeyEnvar", "apiBaseUrl", "apiHost", "cost", "inputCost", "outputCost", "apiVersion",
    "showThinking", "generationConfig", "passthrough", "region", "projectId", "deployment_id", "maxRetries", "model",
    "omitDefaults", "stream", "apiKeyRequired", "requestTimeoutMs", "timeout", "timeoutMs", "profile",
    "organization", "retry", "streaming", "apiType", "modelType", "endpoint", "isReasoningModel", "accountId",
    "isReasoning", "o1", "publisher", "credentials", "audioInputCost", "audioOutputCost", "inferenceModelType",
    "inference_config", "vertexai", "expressMode", "baseUrl", "base_url", "useApiKey", "workspaceUrl", "isPayPerToken",
    "usageContext", "accountIdentifier", "delay", "mcp", "env", "headers", "azureClientId",
    "azureTenantId", "cacheTtl", "version", "modelName", "contentType", "acceptType", "apiBaseUrlRequired",
    "accessKeyId", "secretAccessKey", "sessionToken", "anthropicVersion", "serviceUrl", "oauthToken", "isAnthropic",
    "deploymentName",
    "backend_model", "model_override", "session_key", "message_channel", "account_id", "gateway_url", "auth_token",
    "auth_password", "thinking_level", "websocketTimeout", "websocket", "maxToolCallRounds", "tool_config", *CALLBACKS,
}  # fmt: skip
_SECRET = ("apiKey", "accessKeyId", "secretAccessKey", "sessionToken", "azureClientSecret")
_PLAIN = ("response_format", "tools", "tool_choice", "reasoning_effort", "seed", "service_tier")


def tools(at: Conversion, config: dict[str, Any]) -> list[Any]:
    """Return the tools that a model is offered, as OpenAI has them."""
    try:
        found = resolve([config.get("tools") or [], config.get("functions") or [], _tool_config(config)], at.folder)
    except MissingFileError:
        return []  # `params` notes it
    return [tool for tools in map(_openai_tools, found) if isinstance(tools, list) for tool in tools]


def callbacks(at: Conversion, name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return the functions behind tools: code in JavaScript, or files with the name of a function."""
    found: dict[str, Any] = {}
    for key in CALLBACKS:
        for tool, code in dict_of(config.get(key)).items():
            if not isinstance(code, str):
                at.notes.lost(f"the function behind {tool} of provider {name}", "write it into a file")
            elif code.startswith(PREFIX):
                file, _, function = code.removeprefix(PREFIX).rpartition(":")
                if not file:
                    file, function = function, ""
                found[str(tool)] = (at.folder.find(file)[0], function)
            else:
                found[str(tool)] = code.removeprefix(JAVASCRIPT).strip().rstrip(";")
    return found


def note_secrets(at: Conversion, config: dict[str, Any]) -> None:
    """Say that keys which are in the configuration are not copied."""
    for key in _SECRET:
        if config.get(key) and "\ue000" not in str(config[key]):
            at.notes.differs(
                "keys written into the configuration are not copied: set the provider's variable in the "
                "environment or in a .env file next to the suite"
            )


def params(at: Conversion, name: str, config: dict[str, Any], *, native: bool = False) -> dict[str, Any]:
    """Return the `params` of a target; keys themselves are never copied."""
    note_secrets(at, config)
    params: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    flat = _flat(config)
    if native and isinstance(flat.get("toolConfig"), dict):
        flat = _with_openai_tools(flat)
    for key, value in flat.items():
        if value is None or key in IGNORED:
            continue
        if key == "context" and re.match(r"vertex:.*(?:claude|llama)", name):
            at.notes.differs(
                "`context` of Claude and Llama at Vertex is not sent, as in promptfoo: write it as a system message"
            )
        elif key in PARAMS:
            params[PARAMS[key]] = [value] if PARAMS[key] == "stop" and isinstance(value, str) else value
        elif key in EXTRA:
            extra[key] = value
        else:
            at.notes.lost(
                f"config `{key}` of provider {name}", "if the API takes it, put it under `params: {extra: …}`"
            )
    given, extra = {**extra, **dict_of(config.get("passthrough"))}, {}
    with at.notes.missing(f"a file in the config of provider {name}", advice="add it and import again"):
        extra = resolve(given, at.folder)
    if "tools" in extra:
        extra["tools"] = _openai_tools(extra["tools"])
    if ":responses" in name and isinstance(form := extra.pop("response_format", None), dict):
        shape = form.get("json_schema") or form
        extra["text"] = {"format": {**shape, "type": form.get("type")}}
    if extra:
        params["extra"] = extra
    return params


def _openai_tools(tools: Any) -> Any:
    """Return the tools of Adaline's gateway, of Gemini and of Bedrock as OpenAI has them; others stay as they are."""
    if isinstance(tools, dict) and (tools.get("functionDeclarations") or tools.get("function_declarations")):
        tools = [tools]
    if not isinstance(tools, list):
        return tools
    made: list[Any] = []
    for tool in tools:
        found = _declared(tool) if isinstance(tool, dict) else []
        made += [{"type": "function", "function": one} for one in found] or [tool]
    return made


def _declared(tool: dict[str, Any]) -> list[Any]:
    """Return the functions of a tool that another API than OpenAI's describes."""
    if isinstance(tool.get("toolSpec"), dict):
        spec = tool["toolSpec"]
        schema = (spec.get("inputSchema") or {}).get("json") or {}
        return [{"name": spec.get("name"), "description": spec.get("description", ""), "parameters": schema}]
    if isinstance(tool.get("definition"), dict):
        return [tool["definition"]["schema"]] if tool["definition"].get("schema") else []
    declared = tool.get("functionDeclarations") or tool.get("function_declarations") or []
    return [_lower_types(one) for one in declared]


def _lower_types(value: Any) -> Any:
    """Return a schema of Gemini's with the types of JSON Schema: `object` for `OBJECT`."""
    if isinstance(value, list):
        return [_lower_types(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: item.lower() if key == "type" and isinstance(item, str) else _lower_types(item)
        for key, item in value.items()
    }


def _tool_config(config: dict[str, Any]) -> list[Any]:
    return dict_of(config.get("toolConfig")).get("tools") or []


def _with_openai_tools(config: dict[str, Any]) -> dict[str, Any]:
    """Return settings with the tools, and how they are chosen, under OpenAI's names."""
    given = config["toolConfig"]
    mode = (given.get("functionCallingConfig") or given.get("function_calling_config") or {}).get("mode")
    choice = given.get("toolChoice")
    chosen = {"AUTO": "auto", "ANY": "required", "NONE": "none"}.get(str(mode).upper()) if mode else None
    if isinstance(choice, dict):
        chosen = "auto" if "auto" in choice else "required" if "any" in choice else chosen
    tools = _tool_config(config) or config.get("tools")
    rest = {key: value for key, value in config.items() if key not in ("toolConfig", "tools")}
    return {**rest, **({"tools": tools} if tools else {}), **({"tool_choice": chosen} if chosen else {})}


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings, with those of `generationConfig` and the like among the others."""
    flat = dict(config)
    if "tool_config" in flat:
        flat.setdefault("toolConfig", flat["tool_config"])
    for key in ("generationConfig", "interfaceConfig", "inferenceConfig"):
        if isinstance(flat.get(key), dict):
            flat |= flat.pop(key)
    return flat


def is_plain(config: dict[str, Any]) -> bool:
    """Return whether an OpenAI-compatible server takes all settings; some are of the vendor's own API alone."""
    special = {key for key in _flat(config) if key in EXTRA and key not in _PLAIN}
    tools = config.get("tools")
    odd = isinstance(tools, str | dict) or (
        isinstance(tools, list) and any(not isinstance(tool, dict) or "function" not in tool for tool in tools)
    )
    return not special and not odd


def has_extra(config: dict[str, Any]) -> bool:
    """Return whether there are settings beyond the parameters that all models have."""
    return bool(config.get("passthrough")) or any(key in EXTRA for key in _flat(config))
