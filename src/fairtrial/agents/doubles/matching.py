"""When two calls of an MCP server are the same: by their names and what their arguments mean.

`double.py` runs without the package and reads this file from its own folder, so it needs nothing but Python.
"""

import json

TYPE_CHECKING = False  # `typing` would take longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

WORKSPACE = "{{workspace}}"  # in the place of the path of a trial's folder, which is another one every time


def key_of(
    kind: str, name: str, arguments: "Any", schema: "dict[str, Any] | None" = None, ignore: "Iterable[str]" = ()
) -> str:
    """Return what is equal for calls that mean the same: defaults filled in, keys sorted, 1 for 1.0."""
    filled = _with_defaults(arguments if arguments is not None else {}, schema)
    for place in ignore:
        filled = _without(filled, _steps(place))
    return json.dumps([kind, name, _plain(filled)], sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _with_defaults(value: "Any", schema: "Any") -> "Any":
    """Return arguments with what the schema says of those that are left out."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return value
    found = {name: _with_defaults(item, properties.get(name)) for name, item in value.items()}
    for name, one in properties.items():
        if name not in found and isinstance(one, dict) and "default" in one:
            found[name] = one["default"]
    return found


def _steps(place: str) -> "list[str]":
    """Return the steps of a JSON pointer; a bare name is an argument."""
    if not place.startswith("/"):
        return [place]
    return [step.replace("~1", "/").replace("~0", "~") for step in place[1:].split("/")]


def _without(value: "Any", steps: "list[str]") -> "Any":
    first, rest = steps[0], steps[1:]
    if isinstance(value, dict) and first in value:
        if rest:
            return {**value, first: _without(value[first], rest)}
        return {name: item for name, item in value.items() if name != first}
    if isinstance(value, list) and first.isdigit() and int(first) < len(value):
        place = int(first)
        inner = [_without(value[place], rest)] if rest else []
        return [*value[:place], *inner, *value[place + 1 :]]
    return value


def _plain(value: "Any") -> "Any":
    """Return a value in which numbers that are equal are written alike."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def contains(value: "Any", wanted: "Any") -> bool:
    """Return whether arguments have what an answer of a mock asks for, and perhaps more."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(
            name in value and contains(value[name], item) for name, item in wanted.items()
        )
    return json.dumps(_plain(value), sort_keys=True) == json.dumps(_plain(wanted), sort_keys=True)  # true is not 1


def without_places(value: "Any", folders: "Iterable[str]") -> "Any":
    """Return a value in which the paths of a trial's folder are the same every time."""
    names = sorted(filter(None, folders), key=len, reverse=True)

    def change(text: str) -> str:
        for name in names:
            text = text.replace(name, WORKSPACE)
        return text

    return texts_changed(value, change) if names else value


def with_places(value: "Any", folder: str) -> "Any":
    """Return a value with the path of this trial's folder."""
    return texts_changed(value, lambda text: text.replace(WORKSPACE, folder)) if folder else value


def texts_changed(value: "Any", change: "Callable[[str], str]") -> "Any":
    """Return JSON data in which every text is changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: texts_changed(item, change) for name, item in value.items()}
    return [texts_changed(item, change) for item in value] if isinstance(value, list) else value
