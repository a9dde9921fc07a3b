"""Logs that grow by lines of JSON: each line on its own, a half-written last one included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fairtrial.foreign.chronicle import Chronicle
from fairtrial.foreign.misfit import MISFITS
from fairtrial.foreign.source import MAX_LINE, Reading, Source, decode
from fairtrial.tracks.interchange.values import dict_of, list_of

_MCP = "mcp__"
# What programs put before the first question, as if the user said it.
_CONTEXT = re.compile(
    r"\s*(<(environment_context|user_instructions|session_context|state_snapshot|INSTRUCTIONS)[ >]|# AGENTS\.md )"
)


def entries(source: Source, chronicle: Chronicle) -> Iterator[dict[str, Any]]:
    """Yield the objects in a log; what is not one is counted, and so is a last line that is not whole."""
    broken = ""
    with Reading(source), source.open() as file:
        while line := file.readline(MAX_LINE + 1):
            if broken:
                chronicle.skip(broken)
                broken = ""
            if len(line) > MAX_LINE:
                chronicle.skip("line that is too long")
                _pass_over(file)
                continue
            if not line.strip():
                continue
            try:
                entry = decode(line)
            except ValueError:
                broken = "line that is not JSON"
                continue
            if isinstance(entry, dict):
                yield entry
            else:
                chronicle.skip("line that is not an object")
    if broken:
        chronicle.stopped = "its last line is not whole: the session goes on, or was cut off"


def _pass_over(file: Any) -> None:
    while (piece := file.readline(MAX_LINE + 1)) and not piece.endswith(b"\n"):
        pass


def tolerant(chronicle: Chronicle, what: str, take: Any, *values: Any) -> None:
    """Take one entry; one that is not made as the reader knows it is counted."""
    try:
        take(*values)
    except MISFITS:
        chronicle.skip(f"{what} of another shape")


def text_in(content: Any) -> str:
    """Return the text of a message's content: a text, or parts, of which only texts are kept and others are named."""
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, (_text_of_part(part) for part in list_of(content))))


def _text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = dict_of(part).get("text")
    if isinstance(text, str):
        return text
    kind = dict_of(part).get("type")
    return f"[{kind}]" if isinstance(kind, str) else ""


def is_context(text: str) -> bool:
    """Return whether a program says this in its user's name: where it runs, which instructions there are."""
    return _CONTEXT.match(text) is not None


def split_tool(name: str) -> tuple[str | None, str]:
    """Return the server and the tool in a name such as `mcp__server__tool`."""
    if name.startswith(_MCP):
        server, separator, tool = name.removeprefix(_MCP).partition("__")
        if separator and server and tool:
            return server, tool
    return None, name
