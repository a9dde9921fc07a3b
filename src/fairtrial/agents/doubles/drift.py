"""How a server differs from what was recorded of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairtrial.text.printable import one_line

_LISTS = (
    ("resources", "uri", "resource"),
    ("resourceTemplates", "uriTemplate", "template"),
    ("prompts", "name", "prompt"),
)


def differences(recorded: dict[str, Any], live: dict[str, Any]) -> list[str]:
    """Return in words how a server differs from its recording; nothing if it offers the same."""
    return [one_line(words) for words in (*_of_tools(recorded, live), *_of_lists(recorded, live))]


def versions(recorded: dict[str, Any], live: dict[str, Any]) -> str:
    """Return in words that a server has another version than the recorded one; empty if it has the same."""
    before, now = recorded.get("version", ""), live.get("version", "")
    return "" if before == now else one_line(f"its version was {before or 'unknown'}, and is {now or 'unknown'}")


def _of_tools(recorded: dict[str, Any], live: dict[str, Any]) -> Iterator[str]:
    before = {tool["name"]: tool for tool in recorded.get("tools", ())}
    now = {tool["name"]: tool for tool in live.get("tools", ())}
    for name in sorted(before.keys() | now.keys()):
        if name not in before:
            yield f"the tool `{name}` is new"
        elif name not in now:
            yield f"the tool `{name}` is gone"
        else:
            yield from _of_tool(name, before[name], now[name])


def _of_tool(name: str, before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    if before.get("description") != now.get("description"):
        yield f"the description of `{name}` has changed"
    old, new = before.get("inputSchema") or {}, now.get("inputSchema") or {}
    if old != new:
        yield f"the schema of `{name}` has changed{_arguments(old, new)}"
    if before.get("outputSchema") != now.get("outputSchema"):
        yield f"the schema of what `{name}` returns has changed"
    if before.get("annotations") != now.get("annotations"):
        yield f"the annotations of `{name}` have changed (what it says it does)"


def _arguments(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Say which arguments are concerned."""
    old, new = before.get("properties") or {}, now.get("properties") or {}
    words = [f"`{name}` is new" for name in new if name not in old]
    words += [f"`{name}` is gone" for name in old if name not in new]
    words += [f"`{name}` is another" for name in old if name in new and old[name] != new[name]]
    return f": {', '.join(words)}" if words else ""


def _of_lists(recorded: dict[str, Any], live: dict[str, Any]) -> Iterator[str]:
    for key, field, noun in _LISTS:
        before = {one[field] for one in recorded.get(key, ())}
        now = {one[field] for one in live.get(key, ())}
        yield from (f"the {noun} `{name}` is new" for name in sorted(now - before))
        yield from (f"the {noun} `{name}` is gone" for name in sorted(before - now))
