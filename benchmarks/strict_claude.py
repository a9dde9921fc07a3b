"""What Anthropic's Messages refuse: at home, on Vertex, on Bedrock and at DeepSeek; the words are in `refusals.jsonl`.

Whatever is marked as documented is refused by a rule that providers state, for which nobody reported the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from benchmarks.refusals import (
    Call,
    Refusal,
    bedrock_error,
    google_error,
    messages_error,
    place_on_vertex,
    said,
    tokens_in,
    words,
)

_KEYS = words(
    "model messages max_tokens cache_control container context_management diagnostics inference_geo mcp_servers "
    "metadata output_config service_tier speed stop_sequences stream system temperature thinking tool_choice tools "
    "top_k top_p user_profile_id workspace_id"
)
_CONVERSE_KEYS = words(
    "messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields outputConfig "
    "additionalModelResponseFieldPaths promptVariables requestMetadata performanceConfig serviceTier"
)
_BETA = {"context_management": "context-management", "mcp_servers": "mcp-client", "container": "code-execution"}
_SAMPLING = ("temperature", "top_p", "top_k")
_RANGES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength")
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_TIERS = {
    "opus": (3.0, 4.0, 4.1, 4.5, 4.6, 4.7, 4.8, 5.0, 5.5),
    "sonnet": (3.0, 3.5, 3.7, 4.0, 4.5, 4.6, 5.0, 5.5),
    "haiku": (3.0, 3.5, 4.5, 5.5),
    "fable": (5.0, 5.1, 5.2),
    "mythos": (5.0, 5.1, 5.2),
}
_STANDS_FOR_NONE = re.compile(r"claude-(test|judge|x)\b|claude-[789]$")  # in tests: names that no model has
_REGION = re.compile(r"(us|us-gov|eu|apac|jp|au|global)\.")
_ON_BEDROCK = re.compile(
    r"(ai21|amazon|anthropic|cohere|deepseek|google|luma|meta|minimax|mistral|moonshot|nvidia|openai|qwen|stability"
    r"|twelvelabs|writer|zai)\."
)
_ENDED = ("claude-3-5-haiku",)  # on Bedrock
_LEGACY = ("claude-3-5-sonnet",)

Claude = tuple[str, float]  # tier and release


def claude_of(model: str) -> Claude:
    """A Claude's tier and release: `claude-opus-4-7` is opus, 4.7; release 0 is none of them."""
    old = re.match(r"claude-(\d)(?:[-.](\d)(?!\d))?-(opus|sonnet|haiku)", model)
    if old:
        return old[3], float(f"{old[1]}.{old[2] or 0}")
    found = re.match(r"claude-([a-z]+)-(\d)(?:[-.](\d)(?!\d))?", model)
    if found and found[1] in _TIERS:
        return found[1], float(f"{found[2]}.{found[3] or 0}")
    return "", 0.0


def always_thinks(model: str) -> bool:
    """Whether thinking cannot be switched off."""
    tier, release = claude_of(model)
    return tier in ("fable", "mythos") or (tier, release) == ("opus", 5.5)


# --- the ways to Messages


def messages(call: Call, version: str | None = None) -> Refusal | None:
    """What Messages say to a request that they refuse."""
    body = call.body
    version = version or call.headers.get("anthropic-version")
    if version is None:  # documented
        return Refusal(400, messages_error("anthropic-version: header is required"))
    if call.provider == "deepseek":
        return _deepseek(call)
    claude = claude_of(call.model)
    if not _exists(call.model, claude):
        on_vertex = call.provider == "vertex"
        return said("unknown on Vertex" if on_vertex else "unknown Claude", call, place=place_on_vertex(call))
    for key in body:
        sampling = version >= "2026-10-21" and key in _SAMPLING  # documented
        beta = _BETA.get(key, "") not in call.headers.get("anthropic-beta", "")
        if key not in _KEYS or sampling or beta:
            return said("unknown field of Messages", call, param=key)
    if "max_tokens" not in body:  # documented
        return Refusal(400, messages_error("max_tokens: Field required"))
    return _of_claude(call, claude)


def _of_claude(call: Call, claude: Claude) -> Refusal | None:
    """What the model itself says, wherever it is."""
    for check in (_sampling, _thinking, _effort, _forced_tool, _lengths, _prefill, _texts, _format, _tools):
        if refused := check(call, *claude):
            return refused
    return None


def on_vertex(call: Call) -> Refusal | None:
    """Claude on Vertex: the model is in the path, and the version in the body."""
    body = dict(call.body)
    version = {"vertex-2023-10-16": "2023-06-01", "2026-10-21": "2026-10-21"}.get(body.pop("anthropic_version", ""))
    if version is None or "model" in body:  # documented
        wrong = "anthropic_version: Field required" if version is None else "model: Extra inputs are not permitted"
        return Refusal(400, google_error(wrong))
    if call.path.partition("?")[0].split(":")[-1] != ("streamRawPredict" if body.get("stream") else "rawPredict"):
        return Refusal(400, {"error": {"code": 400, "message": "stream and the path differ"}})
    call.body = {**body, "model": call.model}
    return messages(call, version)


def on_bedrock(call: Call) -> Refusal | None:
    """Converse, and a Claude's own format through `invoke`."""
    body, model = call.body, call.model
    if refused := _id_on_bedrock(call):
        return refused
    converse = not call.path.endswith("/invoke")
    config, more = body.get("inferenceConfig", {}), body.get("additionalModelRequestFields", {})
    for given, known, where in (
        (body, _CONVERSE_KEYS, "input"),
        (config, {"maxTokens", "temperature", "topP", "stopSequences"}, "inferenceConfig"),
    ):
        for key in given if converse else ():
            if key not in known:  # documented
                return bedrock_error(f"Unknown parameter in {where}: {key}")
    if "claude" not in model:
        return None
    call.model = model[model.index("claude") :]
    call.body = _from_converse(body, config, more) if converse else body
    return _of_claude(call, claude_of(call.model))


def _id_on_bedrock(call: Call) -> Refusal | None:
    model = call.model
    region = _REGION.match(model)
    plain = model[region.end() :] if region else model
    vendor = _ON_BEDROCK.match(plain)
    if region and not vendor:
        return said("unknown on Bedrock", call)
    name = plain[vendor.end() :] if vendor else plain
    if name.startswith("claude") and not _exists(name, claude_of(name)):
        return said("unknown on Bedrock", call)
    if name.startswith(_ENDED):
        return said("end of life", call)
    if name.startswith(_LEGACY) and call.account("idle"):
        return said("legacy, idle", call)
    if vendor and not region and claude_of(name)[1] >= 4:
        return said("no profile", call)
    return None


def _from_converse(body: dict[str, Any], config: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """A request to Converse as one to Messages."""
    result = {"messages": [_message(one) for one in body.get("messages", ())], **more}
    names = (("temperature", "temperature"), ("topP", "top_p"), ("stopSequences", "stop_sequences"))
    result |= {ours: config[theirs] for theirs, ours in names if theirs in config}
    result["max_tokens"] = config.get("maxTokens", 4096)
    choice = body.get("toolConfig", {}).get("toolChoice") or {}
    if choice:
        result["tool_choice"] = {"type": next(iter(choice))}
    if "effort" in body.get("outputConfig", {}):
        effort = {"effort": body["outputConfig"]["effort"]}
        result["output_config"] = {**result.get("output_config", {}), **effort}
    return result


def _message(message: dict[str, Any]) -> dict[str, Any]:
    blocks = [{"type": "text", **block} if "text" in block else block for block in message.get("content", ())]
    return {"role": message.get("role"), "content": blocks}


def _exists(model: str, claude: Claude) -> bool:
    tier, release = claude
    if not model.startswith("claude-") or _STANDS_FOR_NONE.match(model):
        return True  # not a Claude at all
    return release in _TIERS.get(tier, ())


# --- what the models refuse


def _newest(tier: str, release: float) -> bool:
    """Those that take neither sampling parameters nor budgets."""
    return release >= 4.7


def _sampling(call: Call, tier: str, release: float) -> Refusal | None:
    body = call.body
    given = [name for name in _SAMPLING if name in body]
    subscribed = "sk-ant-oat" in call.key  # somebody who signed in, without a key for the API
    thinks = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    if _newest(tier, release):
        # documented: this one takes them at their default
        wrong = [name for name in given if not ((tier, release) == ("sonnet", 5) and body[name] == 1)]
        if subscribed and thinks and "temperature" in wrong:
            return said("temperature while thinking", call)
        return said("sampling of Claude", call, param=wrong[0]) if wrong else None
    if thinks and body.get("temperature", 1) != 1 and _budget_is_right(body):
        return said("temperature while thinking", call)
    if release >= 4.1 and {"temperature", "top_p"} <= {*given}:
        return said("both of sampling", call)
    return None


def _budget_is_right(body: dict[str, Any]) -> bool:
    thinking = body["thinking"]
    return thinking["type"] == "adaptive" or 1024 <= thinking.get("budget_tokens", 0) < body.get("max_tokens", 0)


def _thinking(call: Call, tier: str, release: float) -> Refusal | None:
    thinking = call.body.get("thinking") or {}
    kind, budget = thinking.get("type"), thinking.get("budget_tokens", 0)
    if kind == "disabled" and always_thinks(call.model):
        return said("thinking off", call)
    if kind == "disabled" and (tier, release) == ("sonnet", 5.5):
        return said("thinking off, other word", call)
    if kind == "between_tools" and (tier, release) != ("sonnet", 5.5):
        return said("thinking off", call, way=kind)
    if kind == "adaptive" and 0 < release < 4.6:
        return said("adaptive", call)
    if kind != "enabled":
        return None
    if _newest(tier, release):
        return said("thinking by budget", call)
    if budget < 1024:  # documented
        return _documented(call, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if budget >= call.body.get("max_tokens", 0):  # documented
        return _documented(call, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    return None


def _effort(call: Call, tier: str, release: float) -> Refusal | None:
    effort = (call.body.get("output_config") or {}).get("effort")
    if effort is None or not release:
        return None
    if release < 4.5 or (release == 4.5 and tier != "opus"):
        return said("effort of Claude", call)
    levels = ["low", "medium", "high"] + (["max"] if release >= 4.6 else []) + (["xhigh"] if release >= 4.7 else [])
    if effort not in levels:
        return said("effort level of Claude", call, value=effort, levels=", ".join(sorted(levels)))
    off = (call.body.get("thinking") or {}).get("type") in ("disabled", "between_tools")
    can_be_off = release >= 5 and (tier, release) != ("sonnet", 5)
    if off and can_be_off and effort in ("xhigh", "max"):
        return said("thinking off, effort", call, value=effort)
    return None


def _forced_tool(call: Call, tier: str, release: float) -> Refusal | None:
    if (call.body.get("tool_choice") or {}).get("type") not in ("tool", "any"):
        return None
    newest = (release == 5.5 and tier != "haiku") or (tier == "fable" and release > 5) or tier == "mythos"
    if newest:
        return said("forced tool", call)
    thinks = (call.body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    return said("thinking and forced tool", call) if thinks and release < 4.8 else None


def _lengths(call: Call, tier: str, release: float) -> Refusal | None:
    most, window = _most_tokens(tier, release), 199_999 if 0 < release <= 4.5 else 1_000_000
    asked = call.body.get("max_tokens", 0)
    if release and asked > most:
        return said("limit of Claude", call, value=asked, most=most)
    count = tokens_in(call.body.get("messages")) + tokens_in(call.body.get("system"))
    return said("window of Claude", call, count=count, most=window) if count > window else None


def _most_tokens(tier: str, release: float) -> int:
    """How long an answer can be."""
    if release >= 4.6:
        return 128_000
    if release < 3.7:
        return 8192 if release == 3.5 else 4096
    return 32_000 if tier == "opus" and release < 4.5 else 64_000


def _prefill(call: Call, tier: str, release: float) -> Refusal | None:
    said_so_far = call.body.get("messages") or [{}]
    return said("prefill", call) if release >= 4.6 and said_so_far[-1].get("role") == "assistant" else None


def _texts(call: Call, tier: str, release: float) -> Refusal | None:
    for text in call.body.get("stop_sequences") or ():
        if not text.strip():
            return said("blank stop" if text else "empty stop", call)
    count = _marks(call.body)
    return said("cache blocks", call, count=count) if count > 4 else None


def _marks(value: Any) -> int:
    """How many blocks are to be cached."""
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(_marks, value.values()))
    return sum(map(_marks, value)) if isinstance(value, list) else 0


def _format(call: Call, tier: str, release: float) -> Refusal | None:
    shape = (call.body.get("output_config") or {}).get("format")
    if shape is None:
        return None
    if 0 < release < 4.5:  # documented
        return _documented(call, "output_config.format: structured outputs are not supported for this model.")
    for value in _parts(shape["schema"]):
        if not {"type", "enum", "const", "anyOf", "allOf", "$ref"} & {*value}:
            return said("schema without type", call)
        if ranges := [name for name in _RANGES if name in value]:  # documented
            names = ", ".join(ranges)
            about = f"For '{value.get('type')}' type, properties {names} are not supported"
            return _documented(call, f"output_config.format.schema: {about}")
        if value.get("type") != "object" or value.get("additionalProperties") is False:
            continue
        if value.get("additionalProperties"):
            return said("open schema", call)
        about = "For 'object' type, 'additionalProperties' must be explicitly set to false"  # documented
        return _documented(call, f"output_config.format.schema: {about}")
    return None


def _tools(call: Call, tier: str, release: float) -> Refusal | None:
    for place, tool in enumerate(call.body.get("tools") or ()):
        for part in _parts(tool.get("input_schema")):
            kinds = part.get("type", [])
            if any(kind not in _TYPES for kind in ([kinds] if isinstance(kinds, str) else kinds)):
                return said("tool schema", call, place=place)
    return None


def _documented(call: Call, message: str) -> Refusal:
    return bedrock_error(message) if call.provider == "bedrock" else Refusal(400, messages_error(message))


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all schemas in it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for value in schema.get("properties", {}).values():
        yield from _parts(value)
    yield from _parts(schema.get("items"))


def _deepseek(call: Call) -> Refusal | None:
    """DeepSeek thinks unless it is told not to, and wants its thoughts back."""
    off = (call.body.get("thinking") or {}).get("type") == "disabled"
    for message in call.body.get("messages", ()):
        blocks = message.get("content") if message.get("role") == "assistant" else None
        kinds = [block.get("type") for block in blocks] if isinstance(blocks, list) else ["text"] if blocks else []
        if kinds and "thinking" not in kinds and not off:
            return said("thinking must come back", call)
    return None
