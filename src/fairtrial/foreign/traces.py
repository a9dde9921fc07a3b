"""One recorded call of a model, whatever tool recorded it, and what a format of traces is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

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


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """What a trace records in addition to its calls of models: tools that were called, texts that were retrieved."""

    trace: str
    tool_calls: tuple[ToolCall, ...] = ()
    contexts: tuple[str, ...] = ()


class TraceFormat(Protocol):
    """Reads the traces of one tool; a module can be one."""

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether a file that begins like this is one of its own."""

    def calls(self, path: Path) -> Iterator[Call]:
        """Yield the calls in a file one after the other."""

    def asides(self, path: Path) -> Iterator[Aside]:
        """Yield the tools that were called and the texts that were retrieved, in addition to the calls."""


def text_of(value: Any) -> str:
    """Return a value as text: JSON, if it is not a text already."""
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
