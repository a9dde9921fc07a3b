"""Tools as models see them, the calls that models ask for, and what came back."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model sees it; `name` is unique across all servers."""

    name: str
    server: str
    tool: str
    description: str
    schema: dict[str, Any]
    kind: Literal["tool", "resource", "prompt"] = "tool"  # what of the server it stands for


class RequestedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call requested by a model; `problem` says why its arguments cannot be read."""

    id: str
    name: str
    arguments: Any  # a mapping; as the model wrote them if they cannot be read
    problem: str = ""


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a tool call."""

    call: RequestedCall
    text: str
    error: bool = False


class ToolRound(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a model in which it called tools, and what they returned."""

    text: str = ""
    thinking: str = ""
    results: tuple[ToolResult, ...]

    def calls(self) -> list[RequestedCall]:
        """Return the calls."""
        return [result.call for result in self.results]
