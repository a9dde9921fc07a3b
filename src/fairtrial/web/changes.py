"""Changes that the form of a suite makes in its text."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import yaml

from fairtrial.config.editing import Editor
from fairtrial.core.errors import FairtrialError


def apply(editor: Editor, change: dict[str, Any]) -> None:
    """One change of a form, made in the text."""
    make = CHANGES.get(change["do"])
    if make is None:
        raise FairtrialError(f"there is no change `{change['do']}`")
    make(editor, tuple(change.get("path", ())), change)


_NEEDED = ("input", "target", "name")


def _written(key: Any, value: Any) -> Any:
    """An empty field is not written, unless something must stand there."""
    if value in ("", None):
        return "" if key in _NEEDED else None
    return value


def _set_mapping(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """Options and the like, written `name: value`, one a line."""
    given = _mapping(change["text"])
    if path[0] in ("targets", "judge") and isinstance(editor.get(path[:-1]), str):
        editor.set(path[:-1], {"target": editor.get(path[:-1])})
    editor.set(path, given or None)


def _mapping(text: str) -> dict[str, Any]:
    try:
        given = yaml.safe_load(text) if text.strip() else {}
    except yaml.YAMLError:
        given = text
    if not isinstance(given, dict):
        raise FairtrialError("options are written `name: value`, one a line")
    return given


def _set_words(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """Arguments as one types them in a shell."""
    try:
        editor.set(path, shlex.split(change["text"]) or None)
    except ValueError as error:
        raise FairtrialError(f"these arguments cannot be read: {error}") from None


def _duplicate(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    taken = {case.get("id") for case in editor.get(path[:-1]) if isinstance(case, dict)}
    editor.duplicate(path[:-1], int(path[-1]), lambda copy: _rename(copy, taken))


def _rename_key(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """Another name; whoever uses a server by its name uses the new one."""
    editor.rename(path, change["name"])
    if path[0] != "mcp_servers":
        return
    for condition in mapping_of(editor.get(("conditions",))).values():
        used = list_of(condition.get("mcp")) if isinstance(condition, dict) else []
        used[:] = [change["name"].strip() if server == path[-1] else server for server in used]


def _set_judge(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    entry = editor.get(("judge",))
    if isinstance(entry, str):
        editor.set(("judge",), {"target": entry})
    if change["key"] == "target" and not change["value"] and set(editor.get(("judge",)) or {}) <= {"target"}:
        editor.remove(("judge",))  # no judge at all
        return
    editor.set(("judge", change["key"]), _written(change["key"], change["value"]))


def _set_target(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """A target may be written as a name alone, and is as long as it has nothing else."""
    entry = editor.get(path)
    if isinstance(entry, str) and change["key"] != "target":
        editor.set(path, {"target": entry, change["key"]: change["value"]} if change["value"] != "" else entry)
    elif isinstance(entry, str):
        editor.set(path, change["value"])
    else:
        editor.set((*path, change["key"]), _written(change["key"], change["value"]))


Change = Callable[[Editor, tuple[Any, ...], dict[str, Any]], None]
CHANGES: dict[str, Change] = {
    "set": lambda editor, path, change: editor.set(path, _written(path[-1], change["value"])),
    "mapping": _set_mapping,
    "words": _set_words,
    "scorer": lambda editor, path, change: editor.set(path, _scorer(change["type"], change["options"])),
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


def _rename(copy: Any, taken: set[Any]) -> None:
    """A copy needs a name of its own."""
    if isinstance(copy, dict) and copy.get("id"):
        copy["id"] = _new_key(taken, str(copy["id"]))


def _new_key(taken: Any, name: str) -> str:
    if name not in taken:
        return name
    return next(f"{name}-{number}" for number in range(2, 10**6) if f"{name}-{number}" not in taken)


def _scorer(kind: str, options: str) -> Any:
    if not kind:
        return None
    given = _mapping(options)
    return {"type": kind, **given} if given else kind


def list_of(value: Any) -> list[Any]:
    """A list, or what is none as an empty one."""
    return value if isinstance(value, list) else []


def mapping_of(value: Any) -> dict[str, Any]:
    """A mapping, or what is none as an empty one."""
    return value if isinstance(value, dict) else {}
