"""What the real APIs said when they refused a request: `refusals.jsonl`, as reported, each with its source.

A row decides on status, type, code, param and words. `KINDS` says which rows tell of the same refusal, and where in
their words the value, the parameter or the levels of a request stand. `said` repeats them for a request: with the words
of the row about that very model if there is one, else with those about its siblings. Which requests are refused is
decided in `strict_*.py`, from what providers document and people report, not from fairtrial's own knowledge of models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

FILE = Path(__file__).with_name("refusals.jsonl")
CHAT, RESPONSES, MESSAGES, GENERATE = "/v1/chat/completions", "/v1/responses", "/v1/messages", ":generateContent"
_PREFIX = "The model returned the following errors: "  # Converse, before what the model's own API says
_QUOTED = r"(?<=[Vv]alues are: )'.*'(?=\.?$)"


class Refusal(NamedTuple):
    """What a server answers with instead of asking a model."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = {}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One reported refusal; what was not reported is None."""

    provider: str
    model: str
    endpoint: str
    request_feature: str
    status: int
    error_type: str | None
    code: str | int | None
    param: str | None
    message: str
    source_url: str
    date: str | None
    fields_reported: bool
    message_complete: bool
    note: str = ""


@dataclass
class Call:
    """A request: where it goes, which model it names (`name`), and which one it is about (`model`)."""

    provider: str
    endpoint: str
    name: str
    body: dict[str, Any]
    model: str = ""
    key: str = ""  # the account's
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = self.model or self.name

    def account(self, what: str) -> bool:
        """Whether the key is of an account that is `unverified`, `without-access`, a `new-user` or `idle`."""
        return what in self.key


class Kind(NamedTuple):
    """Rows that tell of the same refusal, by what all of them say about the request."""

    providers: str
    features: str
    endpoints: str = ".*"
    places: dict[str, str] = {}  # what a request puts into the words, and where
    models: str = ".*"


_VALUE = r"(?<=does not support )\S+(?= with)"
_LEVELS = {"value": _VALUE, "levels": _QUOTED}
_MINIMUM = {"param": r"(?<=Invalid ')\w+", "least": r"(?<=>= )\d+", "value": r"(?<=got )\S+(?= instead)"}
_THINKING = {"way": r"(?<=thinking\.type\.)\w+(?=\" is not)"}
_SCHEMA = {
    "name": r"(?<=for response_format ')[^']+",
    "context": r"(?<=context=)\(.*?\)(?=, ')",
    "key": r"(?<=Missing ')[^']+",
}
KINDS: dict[str, Kind] = {
    # OpenAI and Azure
    "tools in chat": Kind("openai|azure", r"function tools(,.*)?"),
    "tools in chat, effort told": Kind("openai", r"function tools with reasoning_effort low"),
    "effort in chat": Kind("openai", r"reasoning_effort (none|minimal|null|high|value outside.*)", CHAT, _LEVELS),
    "effort in responses": Kind(
        "openai", r"reasoning\.effort (none or minimal|high)", RESPONSES,
        {"value": r"(?<=value: ')[^']+", "levels": _QUOTED},
    ),
    "no effort in responses": Kind("openai", r"reasoning\.effort( on a model that does not reason)?", RESPONSES),
    "chat name in responses": Kind("openai", r"reasoning_effort \(chat name\)", RESPONSES),
    "temperature in chat": Kind("openai", r"temperature \d.*", CHAT, {"value": _VALUE}),
    "sampling in responses": Kind("openai", "temperature", RESPONSES, {"param": r"(?<=parameter: ')\w+"}),
    "temperature below zero": Kind("openai", "temperature -1", RESPONSES, {"value": r"(?<=got )\S+(?= instead)"}),
    "parameter in chat": Kind(
        "openai|azure", "top_p|logprobs|frequency_penalty|presence_penalty|stop|parallel_tool_calls(, even false)?",
        r".*/chat/completions", {"param": r"(?<=parameter: ')\w+"},
    ),
    "max_tokens": Kind("openai|azure", "max_tokens"),
    "verbosity in chat": Kind("openai", "verbosity low", CHAT, {"value": _VALUE}),
    "verbosity in responses": Kind("openai", r"text\.verbosity low", RESPONSES, {"value": r"(?<=value: ')[^']+"}),
    "limit below the least": Kind("openai", r"max_(output|completion)_tokens \d.*", places=_MINIMUM),
    "limit without room": Kind("openai", "limit too small for one visible token"),
    "summary, unverified": Kind("openai", r"reasoning\.summary, organization not verified"),
    "stream, unverified": Kind("openai", "stream, organization not verified"),
    "responses only": Kind("openai", r"Responses-only model \(codex.*"),
    "responses only, azure": Kind("azure", "Responses-only model"),
    "unknown in chat": Kind("openai", "unknown model|model not open to the account", CHAT),
    "unknown in responses": Kind("openai", "unknown model", RESPONSES),
    "shut down": Kind("openai", "model after its shutdown date"),
    "role": Kind(
        "openai", "(system|developer) message",
        places={"param": r"(?<=value: ')\S+(?=' does)", "value": r"(?<=support ')\w+"},
    ),
    "web search": Kind("openai", "web_search_options"),
    "schema not closed": Kind("openai", "strict schema without additionalProperties false", places=_SCHEMA),
    "schema not required": Kind("openai", "strict schema with a property not in required", places=_SCHEMA),
    "function schema": Kind(
        "openai", "strict function schema",
        places={"name": r"(?<=for function ')[^']+", "key": r"(?<=required key ')[^']+"},
    ),
    "window in responses": Kind("openai", "input beyond the window, streamed"),
    "window in chat": Kind(
        "openai", "input beyond 272,000 tokens",
        places={"most": r"(?<=limit of )\d+", "count": r"(?<=resulted in )\d+"},
    ),
    # Anthropic, also on Vertex and Bedrock
    "forced tool": Kind("anthropic|bedrock", "tool_?[cC]hoice any or tool"),
    "thinking by budget": Kind("anthropic", "thinking enabled with budget_tokens"),
    "thinking off": Kind("anthropic", "thinking disabled", places=_THINKING, models="(?!claude-sonnet-5-5).*"),
    "thinking off, other word": Kind("anthropic", "thinking disabled", models="claude-sonnet-5-5"),
    "thinking off, effort": Kind(
        "anthropic", "thinking disabled with effort .*", places={"value": r"(?<=effort ')\w+(?=' is not)"}
    ),
    "effort of Claude": Kind("anthropic|bedrock", r"output_config\.effort"),
    "effort level of Claude": Kind(
        "anthropic", r"output_config\.effort xhigh",
        places={"value": r"(?<=level ')\w+", "levels": r"(?<=levels: ).*(?=\.$)"},
    ),
    "adaptive": Kind("anthropic", "thinking adaptive"),
    "temperature while thinking": Kind("anthropic", "temperature other than 1 while thinking"),
    "sampling of Claude": Kind("anthropic|bedrock", "temperature", places={"param": r"(?<=`)\w+(?=` is deprecated)"}),
    "both of sampling": Kind("bedrock", "temperature and top_p"),
    "prefill": Kind("anthropic", r"last message from the assistant \(prefill\)"),
    "thinking and forced tool": Kind("anthropic|bedrock", "thinking( enabled)? with forced tool_?[cC]hoice"),
    "limit of Claude": Kind(
        "anthropic", "max_tokens above the model's limit", places={"value": r"(?<=max_tokens: )\d+", "most": r"(?<=> )\d+"}
    ),
    "window of Claude": Kind(
        "anthropic", "prompt beyond the window", places={"count": r"\d+(?= tokens >)", "most": r"(?<=> )\d+"}
    ),
    "cache blocks": Kind("anthropic", "five cache_control blocks", places={"count": r"(?<=Found )\d+"}),
    "blank stop": Kind("anthropic", "stop_sequences of whitespace"),
    "empty stop": Kind("anthropic", "stop_sequences with an empty text"),
    "open schema": Kind("anthropic", "output schema with additionalProperties true"),
    "schema without type": Kind("anthropic", "output schema without type"),
    "unknown field of Messages": Kind("anthropic", "unknown field, or.*", places={"param": r"^[\w.]+(?=:)"}),
    "tool schema": Kind("vertex", "tool schema not JSON Schema.*", places={"place": r"(?<=tools\.)\d+"}),
    "unknown Claude": Kind("anthropic", "unknown model"),
    # Gemini, also on Vertex
    "budget of nothing": Kind("google", "thinkingBudget 0"),
    "no levels": Kind("google", "thinkingLevel"),
    "budget and level": Kind("google", "thinkingLevel and thinkingBudget"),
    "level of Gemini": Kind("google", r"thinkingLevel M\w+", places={"value": r"(?<=level )\w+(?= is)"}),
    "no thinking": Kind("google|vertex", "any thinkingConfig|includeThoughts or a budget"),
    "candidates": Kind("google", "candidateCount 2"),
    "candidates of 1.5": Kind("vertex", "candidateCount 3", places={"value": r"(?<=value was )\d+"}),
    "penalties": Kind("google|vertex", "penalties"),
    "logprobs": Kind("google", "responseLogprobs"),
    "logprobs on Vertex": Kind("vertex", "responseLogprobs"),
    "functions and JSON": Kind("google", "functionDeclarations with responseMimeType.*"),
    "built-in tool and JSON": Kind("google", "built-in tool with responseMimeType.*"),
    "built-in tool and functions": Kind("google", "built-in tool with functionDeclarations"),
    "last from the model": Kind("google|vertex", "last content from the model"),
    "unknown field of Gemini": Kind("google", "unknown field", places={"value": r"(?<=name ).*(?=: Cannot)"}),
    "closed to new users": Kind("google", "model closed to new users"),
    "unknown Gemini": Kind("google", "unknown model", places={"version": r"(?<=version )\w+"}),
    "unknown on Vertex": Kind("vertex", "unknown model", places={"place": r"(?<=`).*?(?=/models)"}),
    # Bedrock itself
    "no profile": Kind("bedrock", "model id without inference profile"),
    "end of life": Kind("bedrock", "model after its end of life"),
    "legacy, idle": Kind("bedrock", "legacy model, account idle.*"),
    "unknown on Bedrock": Kind("bedrock", "unknown model"),
    # others
    "prompt mode": Kind("mistral", "prompt_mode reasoning"),
    "effort of Mistral": Kind("mistral", "reasoning_effort medium", places={"value": r"(?<=effort=')\w+"}),
    "unknown key of Mistral": Kind("mistral", "unknown key in a message"),
    "parameter of Grok": Kind("xai", r"presence_penalty, even 0|reasoning\.effort", places={"param": r"\w+(?=\.$)"}),
    "parameter of older Grok": Kind("xai", "presence_penalty", places={"param": r"\w+$"}),
    "decommissioned": Kind("groq", "retired model"),
    "effort of Groq": Kind("groq", "reasoning_effort minimal or xhigh"),
    "unknown on Groq": Kind("groq", "unknown model"),
    "reasoning must come back": Kind("deepseek", "tool turn without reasoning_content.*"),
    "thinking must come back": Kind("deepseek", "turn without thinking block"),
    "schema of DeepSeek": Kind("deepseek", "response_format json_schema"),
    "calls between texts": Kind("deepseek", "function calls interleaved.*", places={"key": r"(?<=tool call ).*(?=\.$)"}),
    "no tools on OpenRouter": Kind("openrouter", "tools", models="model without tools"),
    "some tools on OpenRouter": Kind(
        "openrouter", "tools", places={"tool": r'(?<=disabling ")[^"]+'}, models="model with tools in part"
    ),
    "reasoning is mandatory": Kind("openrouter", "reasoning effort none"),
    "upstream": Kind("openrouter", r"upstream refusal.*"),
}  # fmt: skip


@cache
def rows() -> tuple[Row, ...]:
    return tuple(msgspec.json.decode(line, type=Row) for line in FILE.read_bytes().splitlines())


@cache
def rows_of(kind: str) -> tuple[Row, ...]:
    providers, features, endpoints, _, models = KINDS[kind]
    return tuple(
        row
        for row in rows()
        if re.fullmatch(providers, row.provider)
        and re.fullmatch(features, row.request_feature)
        and re.fullmatch(endpoints, row.endpoint)
        and re.fullmatch(models, row.model)
    )


def said(kind: str, call: Call, *, param: str | None = None, **values: Any) -> Refusal:
    """The refusal of a call, in the words of the row that is nearest to it."""
    if param is not None:
        values["param"] = param

    def distance(row: Row) -> tuple[bool, ...]:
        return (
            param is not None and param not in row.message,
            row.model != call.name,
            row.provider != call.provider,
            row.endpoint != call.endpoint,
            not row.message_complete,
            not row.fields_reported,
        )

    near = sorted(rows_of(kind), key=distance)
    words = next((row for row in near if row.message_complete), near[0])
    form = _form(call.provider, call.endpoint)
    same = [row for row in near if _form(row.provider, row.endpoint) == form]
    return _written(form, call, _filled(kind, words, call, values), _fields(same, call, param), near[0].status)


def _filled(kind: str, row: Row, call: Call, values: Mapping[str, Any]) -> str:
    """The words of a row, with what this request has in place of what that one had."""
    text = row.message if row.model == "any" else row.message.replace(row.model, call.name)
    for name, place in KINDS[kind].places.items():
        own = name == "levels" and row.model == call.name  # as they were told for this model
        if name in values and not own:
            text = re.sub(place, lambda _, new=str(values[name]): new, text)
    if call.provider == "bedrock":
        plain = text.removeprefix(_PREFIX)
        of_the_model = row.provider != "bedrock" or plain != text or row.endpoint.endswith("invoke")
        return _PREFIX + plain if of_the_model and "/converse" in call.endpoint else plain
    return text.removeprefix(_PREFIX)


class _Fields(NamedTuple):
    type: str | None = None
    code: str | int | None = None
    param: str | None = None


def _fields(near: list[Row], call: Call, param: str | None) -> _Fields:
    """The fields of the nearest row, and what was not reported about it from the next that has it."""
    if not near:
        return _Fields()
    first = near[0]
    if not first.fields_reported:
        full = next((row for row in near if row.fields_reported), first)
        first = msgspec.structs.replace(
            full,
            error_type=first.error_type or full.error_type,
            code=first.code or full.code,
            param=first.param or full.param,
        )
    return _Fields(first.error_type, first.code, param if param is not None else first.param)


# --- how providers write an error


def _form(provider: str, endpoint: str) -> str:
    if provider == "vertex":
        return "anthropic" if "awPredict" in endpoint else "google"
    return {"azure": "openai", "groq": "openai", "deepseek": "openai"}.get(provider, provider)


def _written(form: str, call: Call, message: str, fields: _Fields, status: int) -> Refusal:
    if form == "anthropic":
        return Refusal(status, messages_error(message, fields.type))
    if form == "google":
        return Refusal(status, google_error(message, status, fields.type))
    if form == "bedrock":
        return bedrock_error(message, status, fields.type)
    if form == "mistral":
        error = {"object": "error", "message": message, "type": fields.type, "param": fields.param, "code": fields.code}
        return Refusal(status, {**error, "raw_status_code": status})
    if form == "xai":
        return Refusal(status, {"code": fields.code, "error": message})
    if form == "openrouter":
        return Refusal(status, {"error": {"message": message, "code": fields.code or status}})
    if call.provider == "azure" and fields.type is None and fields.code:
        return Refusal(status, {"error": {"code": fields.code, "message": message}})
    return Refusal(status, openai_error(message, fields.param, fields.code, fields.type))


def openai_error(
    message: str, param: str | None, code: str | int | None, kind: str | None = "invalid_request_error"
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind or "invalid_request_error", "param": param, "code": code}}


def messages_error(message: str, kind: str | None = None) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind or "invalid_request_error", "message": message}}


def google_error(message: str, status: int = 400, kind: str | None = None) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": kind or "INVALID_ARGUMENT"}}


def bedrock_error(message: str, status: int = 400, kind: str | None = None) -> Refusal:
    named = f"{kind or 'ValidationException'}:http://internal.amazon.com/coral/com.amazon.bedrock/"
    return Refusal(status, {"message": message}, {"x-amzn-errortype": named})


def place_on_vertex(call: Call) -> str:
    """Where on Vertex a call looks for its model."""
    found = re.search(r"projects/.*(?=/models/)", call.path)
    return found[0] if found else "publishers/google"


def words(text: str) -> frozenset[str]:
    """The words of a text, as names that are known."""
    return frozenset(text.split())


def listed(levels: tuple[str, ...]) -> str:
    """Levels as OpenAI lists them: 'low', 'medium', and 'high'."""
    quoted = [f"'{level}'" for level in levels]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def tokens_in(value: Any) -> int:
    """How many tokens the texts of a request have, about: four letters are one."""
    return _letters(value) // 4


def _letters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(map(_letters, value))
    if isinstance(value, dict):  # a message or a part of one; images do not count
        return sum(_letters(value[key]) for key in ("content", "text", "parts") if key in value)
    return 0


def as_text(value: Any) -> str:
    """A value as it stands in messages: 0.5, 'high', null."""
    if isinstance(value, str):
        return f"'{value}'"
    return json.dumps(value) if isinstance(value, bool) or value is None else f"{value:g}"
