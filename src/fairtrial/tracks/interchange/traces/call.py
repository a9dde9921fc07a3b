"""The messages of a recorded call, in the shapes in which tools record them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairtrial.foreign.traces import Said, text_of


def parsed(value: Any) -> Any:
    """Return what a text says if it is JSON with an object or a list, else the value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
    return value


def said(value: Any, role: str = "user") -> list[Said]:
    """Return the messages in a value: a text, a message, a list of messages, or an object that has one below a key."""
    value = parsed(value)
    if value in (None, "", [], {}):
        return []
    if isinstance(value, str):
        return [Said(role, value)]
    if isinstance(value, list):
        if any(isinstance(item, dict) and ("role" in item or "parts" in item) for item in value):
            return [message for item in value for message in said(item, role)]
        return [Said(role, content_text(value))]
    if isinstance(value, dict):
        return _said_object(value, role)
    return [Said(role, text_of(value))]


def _said_object(value: Mapping[str, Any], role: str) -> list[Said]:
    for key in ("messages", "message", "choices"):
        if value.get(key):
            before = said(value.get("system"), "system") if key == "messages" else []
            return before + said(value[key], role)
    if "role" in value or "parts" in value or "content" in value:
        own = str(value.get("role") or role)
        content = value["parts"] if value.get("parts") is not None else value.get("content")
        return [Said({"human": "user", "ai": "assistant", "model": "assistant"}.get(own, own), content_text(content))]
    for key in ("input", "question", "query", "prompt", "text", "output", "answer", "completion", "response"):
        if isinstance(value.get(key), str):
            return [Said(role, value[key])]
    return [Said(role, text_of(value))]


def content_text(content: Any) -> str:
    """Return the text of a message's content: a text, or parts of which only the texts count."""
    content = parsed(content)
    if not isinstance(content, list):
        return content_text([content]) if isinstance(content, dict) else text_of(content)
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("type", "text") in ("text", "input_text", "output_text"):
            texts.append(text_of(part.get("content", part.get("text"))))
    return "\n".join(text for text in texts if text)
