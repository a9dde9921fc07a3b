"""Changes that the suite form makes in the text of a suite."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import yaml

from fairtrial.config.editing import Editor
from fairtrial.core.errors import FairtrialError
from fairtrial.text.yaml_text import read_yaml


def apply(editor: Editor, change: dict[str, Any]) -> None:
    """Apply one change of the form to the text."""
    make = CHANGES.get(change["do"])
    if make is None:
        raise FairtrialError(f"unknown change `{change['do']}`")
    make(editor, tuple(change.get("path", ())), change)


_REQUIRED_KEYS = ("input", "target", "name")


def _value_to_write(key: Any, value: Any) -> Any:
    """Return the value to write for a field: None, which removes it, if it is empty and not required."""
    if value in ("", None):
        return "" if key in _REQUIRED_KEYS else None
    return value


def _set_mapping(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """Set options and the like, written as `name: value`, one per line."""
    mapping = _parse_mapping(change["text"])
    if path[0] in ("targets", "judge") and isinstance(editor.get(path[:-1]), str):
        editor.set(path[:-1], {"target": editor.get(path[:-1])})
    editor.set(path, mapping or None)


def _parse_mapping(text: str) -> dict[str, Any]:
    try:
        value = read_yaml(text) if text.strip() else {}
    except yaml.YAMLError:
        value = text
    if not isinstance(value, dict):
        raise FairtrialError("write options as `name: value`, one per line")
    return value


def _set_words(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """Set arguments, written as in a shell."""
    try:
        editor.set(path, shlex.split(change["text"]) or None)
    except ValueError as error:
        raise FairtrialError(f"cannot parse these arguments: {error}") from None


def _duplicate(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    taken = {case.get("id") for case in editor.get(path[:-1]) if isinstance(case, dict)}
    editor.duplicate(path[:-1], int(path[-1]), lambda copy: _give_new_id(copy, taken))


def _rename_key(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """Rename a key; conditions that use a renamed server get its new name."""
    editor.rename(path, change["name"])
    if path[0] != "mcp_servers":
        return
    for condition in as_mapping(editor.get(("conditions",))).values():
        used = condition.get("mcp") if isinstance(condition, dict) else []
        if isinstance(used, dict):  # the name that agents see, and the server
            used.update({name: change["name"].strip() for name, server in used.items() if server == path[-1]})
            continue
        used = as_list(used)
        used[:] = [change["name"].strip() if server == path[-1] else server for server in used]


def _set_judge(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    entry = editor.get(("judge",))
    if isinstance(entry, str):
        editor.set(("judge",), {"target": entry})
    if change["key"] == "target" and not change["value"] and set(editor.get(("judge",)) or {}) <= {"target"}:
        editor.remove(("judge",))  # no judge at all
        return
    editor.set(("judge", change["key"]), _value_to_write(change["key"], change["value"]))


def _set_target(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """Set a key of a target, which stays a plain name as long as it has no other keys."""
    entry = editor.get(path)
    if isinstance(entry, str) and change["key"] != "target":
        editor.set(path, {"target": entry, change["key"]: change["value"]} if change["value"] != "" else entry)
    elif isinstance(entry, str):
        editor.set(path, change["value"])
    else:
        editor.set((*path, change["key"]), _value_to_write(change["key"], change["value"]))


Change = Callable[[Editor, tuple[Any, ...], dict[str, Any]], None]
CHANGES: dict[str, Change] = {
    "set": lambda editor, path, change: editor.set(path, _value_to_write(path[-1], change["value"])),
    "mapping": _set_mapping,
    "words": _set_words,
    "scorer": lambda editor, path, change: editor.set(path, _scorer_value(change["type"], change["options"])),
    "remove": lambda editor, path, change: editor.remove(path),
    "insert": lambda editor, path, change: editor.insert(path, change.get("index"), change["values"]),
    "add": lambda editor, path, change: editor.set(
        (*path, _new_key(editor.get(path) or {}, change["name"])), change["value"]
    ),
    "move": lambda editor, path, change: editor.move(path[:-1], int(path[-1]), int(path[-1]) + change["by"]),
    "rename": _rename_key,
    "duplicate": _duplicate,
    "target": _set_target,
    "judge": _set_judge,
}


def _give_new_id(copy: Any, taken: set[Any]) -> None:
    """Give a copied case an id that is not taken."""
    if isinstance(copy, dict) and copy.get("id"):
        copy["id"] = _new_key(taken, str(copy["id"]))


def _new_key(taken: Any, name: str) -> str:
    if name not in taken:
        return name
    return next(f"{name}-{number}" for number in range(2, 10**6) if f"{name}-{number}" not in taken)


def _scorer_value(kind: str, options: str) -> Any:
    if not kind:
        return None
    parsed = _parse_mapping(options)
    return {"type": kind, **parsed} if parsed else kind


def as_list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def as_mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}
