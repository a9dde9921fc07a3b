"""What tools write, as plain values: marks, times, messages, reasons for failures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

from fairtrial.core.answer import Failure, Usage
from fairtrial.core.expected import Expected, read_expected
from fairtrial.core.secrets import is_credential, without_keys
from fairtrial.core.trace import ToolCall, Trace, short
from fairtrial.text.printable import one_line

_MAX_NAME = 200
_MAX_METADATA = 4000  # characters of one value
_HARMLESS = frozenset({int, bool, type(None)})
_MAX_PARAM = 100
_MAX_DEPTH, _MAX_ITEMS = 6, 200
_MAX_SECONDS = 1e11  # a time above this is in milliseconds
_KINDS = (
    ("timeout", re.compile(r"time[d ]?\s?out|deadline", re.IGNORECASE)),
    ("rate_limited", re.compile(r"rate.?limit|\b429\b|too many requests", re.IGNORECASE)),
    ("auth", re.compile(r"\b40[13]\b|unauthori[sz]ed|invalid api key|AuthenticationError", re.IGNORECASE)),
    ("server", re.compile(r"\b5\d\d\b|server ?error|overloaded", re.IGNORECASE)),
    ("connection", re.compile(r"connection|ECONN|getaddrinfo|network", re.IGNORECASE)),
)
_BIDI = re.compile("[\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_HIDDEN = "[key hidden]"


def scrub(text: str) -> str:
    """Hide what looks like a key or a header with one."""
    return without_keys(text, _HIDDEN)[0]


def name_of(value: Any) -> str:
    """Return an id or a name as one short line."""
    text = _BIDI.sub("", one_line(value if isinstance(value, str) else text_of(value)))
    return scrub(text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…")


def clean_text(value: Any) -> str:
    """Return any value as text, without what looks like a key."""
    return scrub(text_of(value))


def text_of(value: Any) -> str:
    """Return any value as text: texts as they are, messages by their content, everything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(item, dict) and "role" in item for item in value):
        return chat_text(value)
    if isinstance(value, list) and value and all(isinstance(item, dict) and "type" in item for item in value):
        return parts_text(value)
    return msgspec.json.encode(value, enc_hook=repr).decode()


def chat_text(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return a chat as text: a single user's message as it is, several with their roles."""
    said = [(str(message.get("role", "")), text_of(message.get("content"))) for message in messages]
    others = [(role, content) for role, content in said if role != "system"]
    if len(others) == 1 and others[0][0] == "user":
        return others[0][1]
    return "\n\n".join(f"{role.upper()}: {content}" for role, content in others)


def parts_text(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the content of a message that has parts; anything but text is named, not kept."""
    return "\n".join(str(part["text"]) if isinstance(part.get("text"), str) else f"[{part['type']}]" for part in parts)


def number_of(value: Any) -> float | None:
    """Return a finite number, also from a text or a truth value; None if it is none."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return None
        return number if math.isfinite(number) else None
    return None


_MARKS = {"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def mark_of(value: Any) -> float | None:
    """Return the number of a mark: C(orrect), I(ncorrect), P(artial), N(o answer), yes, no, true, false, a number."""
    if isinstance(value, str) and value.strip().lower() in _MARKS:
        return _MARKS[value.strip().lower()]
    return number_of(value)


def count_of(value: Any) -> int:
    """Return a count of tokens, 0 if there is none."""
    number = number_of(value)
    return int(number) if number is not None and 0 <= number < 2**53 else 0


def seconds_of(value: Any) -> float | None:
    """Return a time as seconds since 1970: from ISO 8601, or from seconds or milliseconds."""
    if isinstance(value, str) and "-" in value:
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    else:
        number = number_of(value)
        return number / 1000 if number is not None and number > _MAX_SECONDS else number
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def failure_of(message: Any) -> Failure:
    """Return another tool's error as a failure, its kind read from the words."""
    text = one_line(scrub(text_of(message)))[:2000] or "no reason given"
    kind = next((kind for kind, pattern in _KINDS if pattern.search(text)), "crashed")
    return Failure(kind=kind, message=text)


def milliseconds_of(seconds: Any) -> float | None:
    """Return a duration in seconds as milliseconds; None if it is not a number."""
    number = number_of(seconds)
    return None if number is None else 1000 * number


def usage_of(
    prompt: Any, completion: Any, *, cache_read: Any = 0, cache_write: Any = 0, reasoning: Any = 0
) -> Usage | None:
    """Return token counts; None if the tool recorded none."""
    if prompt is None and completion is None:
        return None
    return Usage(
        prompt=count_of(prompt),
        completion=count_of(completion),
        cache_read=count_of(cache_read),
        cache_write=count_of(cache_write),
        reasoning=count_of(reasoning),
    )


def tool_trace(messages: Any) -> dict[str, Any] | None:
    """Return the tool calls in a list of messages with their results; None if there are none."""
    if not isinstance(messages, list):
        return None
    messages = [message for message in messages if isinstance(message, dict)]
    results = {message.get("tool_call_id"): message for message in messages if message.get("role") == "tool"}
    made = [call for message in messages for call in message.get("tool_calls") or () if isinstance(call, dict)]
    calls = [_call(call, results.get(call.get("id")) or {}) for call in made]
    return Trace(tool_calls=tuple(calls)).as_dict() if calls else None


def _call(call: dict[str, Any], result: dict[str, Any]) -> ToolCall:
    function = call.get("function")
    named = function if isinstance(function, dict) else {"name": function or call.get("name"), **call}
    arguments = named.get("arguments", call.get("arguments"))
    return ToolCall(
        tool=name_of(named.get("name") or "tool"),
        arguments=tidy(arguments),
        result=short(scrub(text_of(result.get("content")))),
        error=bool(result.get("error")),
    )


def tidy(value: Any, depth: int = 0) -> Any:  # noqa: PLR0911 - one for each kind of value
    """Return metadata that may be stored: without credentials, headers, and very long or deep values."""
    if type(value) in _HARMLESS:
        return value
    if isinstance(value, str):
        return scrub(value) if len(value) <= _MAX_METADATA else f"{scrub(value)[: _MAX_METADATA - 1]}…"
    if depth >= _MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        kept = {name: item for key, item in value.items() if (name := _public_name(str(key))) is not None}
        return {name: tidy(item, depth + 1) for name, item in islice(kept.items(), _MAX_ITEMS)}
    if isinstance(value, list | tuple):
        return [tidy(item, depth + 1) for item in value[:_MAX_ITEMS]]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return tidy(str(value), depth)


@lru_cache(4096)
def _public_name(key: str) -> str | None:
    return None if _private(key) else name_of(key)


def _private(key: str) -> bool:
    return is_credential(key) or key.lower() in ("headers", "http", "cookies", "env")


_ADDRESSES = ("base_url", "baseurl", "url", "apibaseurl", "endpoint", "host", "apihost")


def params_of(config: Any, known: Iterable[str] = ()) -> dict[str, Any]:
    """Return the parameters in a configuration that are numbers, truth values, or short texts without an address."""
    if not isinstance(config, dict):
        return {}
    wanted = set(known)
    params: dict[str, Any] = {}
    for key, value in config.items():
        if (wanted and key not in wanted) or str(key).lower().replace("_", "") in _ADDRESSES:
            continue
        is_count = str(key).lower().endswith("tokens") and isinstance(value, int)  # max_tokens is not a token
        if _private(str(key)) and not is_count:
            continue
        if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            params[name_of(key)] = value
        elif isinstance(value, str) and value and len(value) <= _MAX_PARAM and "://" not in value:
            params[name_of(key)] = scrub(value)
    return params


def chat_or_text(value: Any) -> str:
    """Return a question as text; a chat may be written as JSON in a text, or be in a list of one such text."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    if isinstance(value, str) and value.startswith('[{"role"'):
        try:
            return chat_text(msgspec.json.decode(value))
        except (msgspec.DecodeError, AttributeError, TypeError):
            return value
    return text_of(value)


def expected_of(value: Any) -> Expected:
    """Return the right answer or answers."""
    expected = read_expected(value)
    if isinstance(expected, tuple):
        return tuple(map(scrub, expected))
    return scrub(expected) if expected else None


def dict_of(value: Any) -> dict[str, Any]:
    """Return a mapping as it is, and anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """Return a list as it is, and anything else as an empty one."""
    return value if isinstance(value, list) else []
