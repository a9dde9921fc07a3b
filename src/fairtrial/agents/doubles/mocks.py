"""Mocks of MCP servers: a file with tools, and what they answer to which arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import yaml

from fairtrial.core.ids import content_hash
from fairtrial.text.yaml_text import read_yaml, reason_of

Result = dict[str, Any]  # as the protocol has it: {"result": …}


class MockError(Exception):
    """A mock cannot be read; the message is one sentence without an end."""


class MockAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a tool returns if its arguments have `when`: `result`, one of `results` after the other, or an `error`."""

    when: dict[str, Any] = {}
    result: Any = msgspec.UNSET
    results: list[Any] | msgspec.UnsetType = msgspec.UNSET
    error: str | msgspec.UnsetType = msgspec.UNSET

    def replies(self) -> list[Result]:
        """Return the replies to the first such call of a trial, the second, and so on; the last one stays."""
        if isinstance(self.error, str):
            return [{"result": error_result(self.error)}]
        values = [self.result] if self.results is msgspec.UNSET else self.results
        return [{"result": result_of(value)} for value in values]


class MockTool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool as agents see it, and its answers; the first that fits counts."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}
    read_only: bool = False
    answers: list[MockAnswer] = []

    def offer(self) -> dict[str, Any]:
        """Return the tool as a server lists it."""
        offer = {"name": self.name, "description": self.description, "inputSchema": {"type": "object", **self.schema}}
        return {**offer, "annotations": {"readOnlyHint": True}} if self.read_only else offer


class Mock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server that does not have to run."""

    tools: list[MockTool]
    name: str = "mock"
    version: str = ""
    instructions: str = ""

    @property
    def offers(self) -> dict[str, Any]:
        """What it offers, as in a recording."""
        told = {"name": self.name, "version": self.version, "capabilities": {"tools": {}}}
        told |= {"instructions": self.instructions} if self.instructions else {}
        return {**told, "tools": [tool.offer() for tool in self.tools]}

    @property
    def sha256(self) -> str:
        """What tells it from every other mock."""
        return content_hash(self)


def read_mock(path: Path) -> Mock:
    """Return the mock in a YAML file; raise MockError if there is none."""
    try:
        mock = msgspec.convert(read_yaml(path.read_text("utf-8")), Mock)
    except (OSError, UnicodeDecodeError) as error:
        raise MockError(
            f"it cannot be read: {getattr(error, 'strerror', '') or 'it contains other things than text'}"
        ) from None
    except yaml.YAMLError as error:
        raise MockError(f"it cannot be read as YAML: {reason_of(error)}") from None
    except msgspec.ValidationError as error:
        raise MockError(f"it cannot be used as a mock: {error}") from None
    names = [tool.name for tool in mock.tools]
    if not names:
        raise MockError("it has no `tools`")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise MockError(f"it has two tools with the name `{twice}`")
    for tool in mock.tools:
        for place, answer in enumerate(tool.answers, start=1):
            given = [answer.result, answer.results, answer.error]
            if sum(value is not msgspec.UNSET for value in given) != 1 or answer.results == []:
                raise MockError(f"answer {place} of `{tool.name}` needs one of `result`, `results` and `error`")
    return mock


def result_of(value: Any) -> dict[str, Any]:
    """Return a text or any JSON as the result of a tool; content as the protocol has it stays as it is."""
    content = value.get("content") if isinstance(value, dict) else None
    if isinstance(content, list) and all(isinstance(block, dict) and "type" in block for block in content):
        return dict(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    result = {"content": [{"type": "text", "text": text}]}
    return {**result, "structuredContent": value} if isinstance(value, dict) else result


def error_result(text: str) -> dict[str, Any]:
    """Return an error of a tool, which its agent can read."""
    return {"content": [{"type": "text", "text": text}], "isError": True}
