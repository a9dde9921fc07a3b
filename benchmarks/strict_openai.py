"""What OpenAI's chat completions and Responses refuse, at home and on Azure; the words are in `refusals.jsonl`.

Whatever is marked as documented is refused by a rule that providers state, for which nobody reported the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.refusals import RESPONSES, Call, Refusal, as_text, listed, openai_error, said, tokens_in, words

_CHAT_KEYS = words(
    "model messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens "
    "metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key "
    "prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier "
    "stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options"
)
_RESPONSES_KEYS = words(
    "access_programs background client_metadata context_management conversation image include input instructions max_output_tokens max_tool_calls metadata "
    "model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options "
    "prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text "
    "tool_choice tools top_logprobs top_p truncation user"
)
_PENALTIES = ("frequency_penalty", "presence_penalty")
_ALL = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_FEWEST = 16  # tokens that a reply through Responses may be limited to


class Family(NamedTuple):
    """How models reason: the efforts they take, and at which of them chat completions take function tools."""

    efforts: tuple[str, ...] = ()  # in chat; none: unknown
    default: str | None = None  # None: it does not reason
    more: tuple[str, ...] = ()  # efforts that only Responses take
    tools: str = "yes"  # or "untold": at no effort but its default, "none": only if told `none`, "never"
    window: int = 922_000  # tokens of input

    def effort_levels(self, endpoint: str) -> tuple[str, ...]:
        return self.efforts + self.more if endpoint == RESPONSES else self.efforts


_UP_TO_HIGH, _UP_TO_XHIGH = ("none", "low", "medium", "high"), ("none", "low", "medium", "high", "xhigh")
_FAMILIES: tuple[tuple[str, Family], ...] = (
    (r"o\d", Family(_ALL[2:5], "medium", window=200_000)),
    (r"gpt-5-chat", Family()),
    (r"gpt-5\.\d-chat", Family(("medium",), "medium", window=272_000)),
    (r"gpt-5-pro", Family(("high",), "high", window=272_000)),
    (r"gpt-5\.\d-pro", Family(_ALL[3:6], "medium")),
    # They refuse a temperature without being told an effort: github.com/AnswerDotAI/shell_sage/issues/77 (gpt-5.2-codex).
    (r"gpt-5[\w.]*-codex", Family((), "medium", window=272_000)),
    (r"gpt-5(?!\.)", Family(_ALL[1:5], "medium", window=272_000)),
    (r"gpt-5\.1", Family(_UP_TO_HIGH, "none", window=272_000)),
    (r"gpt-5\.[23]", Family(_UP_TO_XHIGH, "none", window=272_000)),
    (r"gpt-5\.4", Family(_UP_TO_XHIGH, "none", tools="untold")),
    (r"gpt-5\.5", Family(_UP_TO_XHIGH, "medium")),
    (r"gpt-6-astra|gpt-6\.1-sol", Family(_ALL[2:6], "medium", ("max",), "never")),
    (r"gpt-5\.6|gpt-6", Family(_UP_TO_XHIGH, "medium", ("max",), "none")),
)
# Models that there are, and those that only Responses serve.
_RELEASED = re.compile(
    r"""(gpt-3\.5-turbo|gpt-4(-turbo|-32k)?|gpt-4o(-mini|-audio|-search|-mini-search|-transcribe)?|gpt-4\.[15](-mini|-nano)?
    |chatgpt-4o|o1(-mini|-pro)?|o3(-mini|-pro|-deep-research)?|o4-mini(-deep-research)?|codex-mini
    |gpt-5(-mini|-nano|-pro|-codex|-codex-mini|-chat|-search-api)?|gpt-5\.[1-5](-mini|-nano|-pro|-chat|-codex(-max|-mini)?)?
    |gpt-5\.6(-sol|-terra|-luna)?|gpt-6-(astra|sol|luna)|gpt-6\.1-(sol|terra)|gpt-oss-\w+|gpt-(audio|realtime|image)[\w.-]*)
    (-preview|-latest|-\d{4}(-\d\d){1,2}|-\d{4})*(:.*)?""",
    re.VERBOSE,
)
_RESPONSES_ONLY = re.compile(r"(o\d|gpt-5(\.\d)?)-pro|gpt-5[\w.]*-codex|codex-|o\d.*deep-research")
_SHUT_DOWN = ("gpt-5.3-chat-latest",)
_STANDS_FOR_NONE = re.compile(r"gpt-(test|x)\b|gpt-[789]$")  # in tests: names that no model has


def family_of(model: str) -> Family:
    return next((family for pattern, family in _FAMILIES if re.match(pattern, model)), Family())


def always_reasons(model: str) -> bool:
    """Whether reasoning cannot be switched off."""
    family = family_of(model)
    return family.default is not None and "none" not in family.efforts and bool(family.efforts)


def chat(call: Call) -> Refusal | None:
    """What chat completions say to a request that they refuse."""
    body = call.body
    for key in body:
        if key not in _CHAT_KEYS:  # documented
            return Refusal(400, openai_error(f"Unrecognized request argument supplied: {key}", None, None))
    call.model = call.model.removeprefix("ft:")
    family = family_of(call.model)
    for refused in (
        _model(call),
        _roles(call),
        _stream(call),
        _schemas(call, body.get("response_format", {}).get("json_schema"), "response_format"),
        _strict_functions(call),
        _chat_only(call, family),
        _chat_of_reasoning(call, family) if family.default is not None else _chat_of_others(call),
    ):
        if refused:
            return refused
    return None


def responses(call: Call) -> Refusal | None:
    """What Responses say to a request that they refuse."""
    body = call.body
    for key in body:
        if key == "reasoning_effort":
            return said("chat name in responses", call)
        if key not in _RESPONSES_KEYS:  # documented
            return Refusal(400, openai_error(f"Unknown parameter: '{key}'.", key, "unknown_parameter"))
    family = family_of(call.model)
    for refused in (
        _model(call),
        _schemas(call, body.get("text", {}).get("format"), "text.format.schema"),
        _strict_functions(call),
        _responses_limits(call, family),
        _responses_reasoning(call, family),
        _verbosity(call, body.get("text", {}).get("verbosity"), "text.verbosity"),
    ):
        if refused:
            return refused
    return None


# --- the model


def _model(call: Call) -> Refusal | None:
    model, in_chat = call.model, call.endpoint != RESPONSES
    unknown = "unknown in chat" if in_chat else "unknown in responses"
    if model in _SHUT_DOWN:
        return said("shut down", call)
    if re.match(r"gpt-|o\d|chatgpt|codex-", model) and not _RELEASED.fullmatch(model):
        return None if _STANDS_FOR_NONE.match(model) else said(unknown, call)
    if model.startswith("gpt-6") and call.account("without-access"):
        return said(unknown, call)
    if in_chat and _RESPONSES_ONLY.match(model):
        return said("responses only, azure" if call.provider == "azure" else "responses only", call)
    return None


def _roles(call: Call) -> Refusal | None:
    for place, message in enumerate(call.body.get("messages", ()) if call.model.startswith("o1-mini") else ()):
        if message.get("role") in ("system", "developer"):
            return said("role", call, param=f"messages[{place}].role", value=message["role"])
    return None


def _stream(call: Call) -> Refusal | None:
    body = call.body
    if "stream_options" in body and not body.get("stream"):  # documented
        message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        return Refusal(400, openai_error(message, "stream_options", None))
    unverified = call.account("unverified") and family_of(call.model).default is not None
    return said("stream, unverified", call) if body.get("stream") and unverified else None


# --- parameters


def _chat_only(call: Call, family: Family) -> Refusal | None:
    body = call.body
    if "web_search_options" in body and "search" not in call.model:
        return said("web search", call)
    for name in ("max_completion_tokens", "max_tokens"):
        if (body.get(name) or 1) < 1 or body.get(name) == 0:
            return said("limit below the least", call, param=name, least=1, value=body[name])
    count = tokens_in(body.get("messages"))
    if count > family.window:
        return said("window in chat", call, most=family.window, count=count)
    return _verbosity(call, body.get("verbosity"), "verbosity")


def _verbosity(call: Call, verbosity: str | None, param: str) -> Refusal | None:
    """Models before gpt-5, and those for chats, know one."""
    fixed = re.match(r"gpt-[34]|chatgpt|o\d|gpt-5[\d.]*-chat", call.model)
    if verbosity in (None, "medium") or not fixed:
        return None
    if param == "verbosity":
        return said("verbosity in chat", call, value=f"'{verbosity}'")
    return said("verbosity in responses", call, value=verbosity)


def _chat_of_others(call: Call) -> Refusal | None:
    """Models that do not reason."""
    if "reasoning_effort" in call.body and re.match(r"gpt-[345]", call.model):  # documented
        return Refusal(400, openai_error("Unrecognized request argument supplied: reasoning_effort", None, None))
    return None


def _chat_of_reasoning(call: Call, family: Family) -> Refusal | None:
    """Models that reason before they answer."""
    body, model = call.body, call.model
    if "max_tokens" in body:
        return said("max_tokens", call)
    effort = body.get("reasoning_effort", family.default)
    if "reasoning_effort" in body and family.efforts and effort not in family.efforts:
        return said("effort in chat", call, value=as_text(effort), levels=listed(family.efforts))
    if body.get("tools") and (refused := _tools(call, family)):
        return refused
    if re.match(r"o\d", model) and "parallel_tool_calls" in body:
        return said("parameter in chat", call, param="parallel_tool_calls")
    if effort != "none" and body.get("temperature", 1) != 1:
        return said("temperature in chat", call, value=as_text(body["temperature"]))
    refused = () if effort == "none" else ("top_p", "logprobs")
    stop = ("stop",) if re.match(r"o[34]|gpt-5(?!\.)|gpt-5\.2", model) else ()  # the o-series: documented
    for name in (*refused, *_PENALTIES, *stop):
        if name in body:
            return said("parameter in chat", call, param=name)
    if re.match(r"gpt-5(?!\.)", model) and body.get("max_completion_tokens") == 1:
        return said("limit without room", call)
    return None


def _tools(call: Call, family: Family) -> Refusal | None:
    """Function tools beside an effort: newer models take them only if they are told not to reason, or never."""
    told = call.body.get("reasoning_effort")
    if family.tools == "untold":
        return said("tools in chat, effort told", call) if told not in (None, "none") else None
    off = told == "none" or (told is None and call.provider == "azure" and call.model.startswith("gpt-5.6"))
    refused = family.tools == "never" or (family.tools == "none" and not off)
    return said("tools in chat", call) if refused else None


def _responses_limits(call: Call, family: Family) -> Refusal | None:
    body = call.body
    limit = body.get("max_output_tokens")
    if limit is not None and limit < _FEWEST:
        return said("limit below the least", call, param="max_output_tokens", least=_FEWEST, value=limit)
    if tokens_in(body.get("input")) <= family.window:
        return None
    refused = said("window in responses", call)
    if not body.get("stream"):
        return Refusal(400, refused.body)
    return Refusal(refused.status, {"type": "error", "sequence_number": 2, **refused.body})


def _responses_reasoning(call: Call, family: Family) -> Refusal | None:
    body = call.body
    reasoning = body.get("reasoning") or {}
    effort = reasoning.get("effort") or family.default
    if reasoning.get("effort") is not None:
        if family.default is None and re.match(r"gpt-[345]", call.model):
            return said("no effort in responses", call)
        levels = family.effort_levels(RESPONSES)
        if levels and effort not in levels:
            return said("effort in responses", call, value=effort, levels=listed(levels))
    if reasoning.get("summary") and call.account("unverified"):
        return said("summary, unverified", call)
    if (body.get("temperature") or 0) < 0:
        return said("temperature below zero", call, value=as_text(body["temperature"]))
    for name in ("temperature", "top_p"):
        if name in body and family.default is not None and effort != "none":
            return said("sampling in responses", call, param=name)
    return None


# --- schemas that must be followed strictly


def _schemas(call: Call, shape: Any, param: str) -> Refusal | None:
    if not shape or not shape.get("strict"):
        return None
    for context, value in _objects(shape["schema"], ()):
        about = {"name": shape.get("name"), "context": context}
        if value.get("additionalProperties") is not False:
            return said("schema not closed", call, param=param, **about)
        missing = [key for key in value.get("properties", ()) if key not in value.get("required", ())]
        if missing:
            refused = said("schema not required", call, param=param, key=missing[0], **about)
            if param == "response_format":  # chat has no code for it
                refused.body["error"]["code"] = None
            return refused
    return None


def _strict_functions(call: Call) -> Refusal | None:
    for tool in call.body.get("tools") or ():
        function = tool.get("function", tool)
        schema = function.get("parameters") or {}
        extra = [key for key in schema.get("required", ()) if key not in schema.get("properties", ())]
        if function.get("strict") and extra:
            return said("function schema", call, name=function.get("name"), key=extra[0])
    return None


def _objects(schema: Any, context: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The objects in a schema, with the way to each."""
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object":
        yield context, schema
    for key, value in schema.get("properties", {}).items():
        yield from _objects(value, (*context, "properties", key))
    yield from _objects(schema.get("items"), (*context, "items"))
