"""One recorded call of a model, whatever tool recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairtrial.core.trace import ToolCall

_LABELS = ("expected", "expected_output", "expectedOutput", "reference", "ground_truth", "label")


class Said(msgspec.Struct, frozen=True):
    """One message; calls and results of tools are not part of its text."""

    role: str
    text: str


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What a model was asked, and what it answered."""

    id: str
    trace: str = ""
    name: str = ""
    model: str = ""
    provider: str = ""
    started_at: str = ""
    session: str = ""
    user: str = ""
    error: str = ""
    tags: tuple[str, ...] = ()
    messages: tuple[Said, ...] = ()
    answer: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()  # on the way to the answer, or as the answer
    metadata: dict[str, Any] = {}
    scores: dict[str, Any] = {}

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n\n".join(message.text for message in self.messages if message.role in ("system", "developer"))

    @property
    def questions(self) -> list[str]:
        """What the user said."""
        return [message.text for message in self.messages if message.role == "user" and message.text.strip()]

    @property
    def expected(self) -> str | None:
        """The right answer, if it was recorded with the call."""
        value = next((self.metadata[name] for name in _LABELS if self.metadata.get(name) not in (None, "")), None)
        return None if value is None else text_of(value)

    def columns(self) -> dict[str, Any]:
        """Return what calls are selected by, under readable names."""
        plain = ("id", "trace", "name", "model", "provider", "started_at", "session", "user", "error", "answer")
        return {
            **{name: getattr(self, name) for name in plain},
            "tags": list(self.tags),
            "system": self.system,
            "input": "\n\n".join(self.questions),
            "turns": len(self.questions),
            "tools": bool(self.tool_calls),
            "tool_names": [call.tool for call in self.tool_calls],
            "expected": self.expected,
            **{f"metadata.{name}": value for name, value in self.metadata.items()},
            **{f"score.{name}": value for name, value in self.scores.items()},
        }


def text_of(value: Any) -> str:
    """Return a value as text: JSON, if it is not a text already."""
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


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
