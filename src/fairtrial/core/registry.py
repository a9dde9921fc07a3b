"""The doors: lookup of the parts of every family, whether they come with fairtrial, with a track or with a plug-in.

A part of the core is a file in the family's folder: the file's name is the part's name, and its class has the same name
in camel case (`scorers/json_schema.py` defines `JsonSchema` and is `json_schema` in every suite). A track lists its
parts in `PARTS`, by family and name, as `module:attribute` inside the track, or names a folder of such files. A plug-in
has entry points `fairtrial.<family>`. Nothing is imported before it is asked for by name.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_PACKAGE = Path(__file__).parent.parent
_TRACKS = "fairtrial.tracks"
_FOLDERS = ("scorers", "targets")  # families that have a folder in the core


@cache
def plugged_in(family: str) -> dict[str, EntryPoint]:
    """Return the parts that installed plug-ins add to a family."""
    points = [point for point in _entry_points() if point.group == f"fairtrial.{family}"]
    return {point.name: point for point in reversed(points)}  # what comes first on the path wins, as with modules


@cache
def _entry_points() -> list[EntryPoint]:
    """Return the entry points of plug-ins; only metadata that name a door are parsed: it saves 50 ms at every start."""
    files = (file for folder in dict.fromkeys(sys.path) for file in Path(folder).glob("*-info/entry_points.txt"))
    ours = [file.parent for file in files if b"[fairtrial." in file.read_bytes()]
    if not ours:
        return []
    from importlib.metadata import Distribution

    return [point for folder in ours for point in Distribution.at(folder).entry_points]


class Part(NamedTuple):
    """Where a part is, as `module:attribute`, and what it does in one line, for lists that do not import it."""

    where: str
    summary: str = ""


@cache
def built_in(family: str) -> dict[str, Part]:
    """Return where the parts that come with fairtrial are: those of the core, then of tracks."""
    parts = dict(_in_folder(f"fairtrial.{family}")) if family in _FOLDERS else {}
    for track in pkgutil.iter_modules([str(_PACKAGE / "tracks")]):
        home = f"{_TRACKS}.{track.name}"
        own = importlib.import_module(home).PARTS.get(family, {})
        if isinstance(own, str):
            parts.update(_in_folder(f"{home}.{own}"))
        else:
            made = {name: one if isinstance(one, Part) else Part(one) for name, one in own.items()}
            parts.update((name, part._replace(where=f"{home}.{part.where}")) for name, part in made.items())
    return parts


def _in_folder(package: str) -> Iterator[tuple[str, Part]]:
    """Yield the parts in a family's folder, one per file."""
    folder = _PACKAGE.joinpath(*package.split(".")[1:])
    for module in pkgutil.iter_modules([str(folder)]):
        if not module.name.startswith("_"):
            camel = "".join(word.capitalize() for word in module.name.split("_"))
            yield module.name, Part(f"{package}.{module.name}:{camel}")


def builtin_names(family: str) -> tuple[str, ...]:
    """Return the names of the parts that come with fairtrial."""
    return tuple(sorted(built_in(family)))


def listed(family: str) -> list[str]:
    """Return the names of all parts in the order in which they are listed: the core, tracks, plug-ins."""
    return list(dict.fromkeys((*built_in(family), *plugged_in(family))))


def names(family: str) -> list[str]:
    """Return the names of all parts of a family, built in or from plug-ins."""
    return sorted({*built_in(family), *plugged_in(family)})


def load(family: str, name: str) -> Any:
    """Return a part; the error for an unknown name suggests the nearest one."""
    key = name.replace("-", "_")
    if key in built_in(family):
        return _load(built_in(family)[key].where)
    if name in plugged_in(family):
        return plugged_in(family)[name].load()
    from fairtrial.core.errors import FairtrialError  # msgspec: `fairtrial --help` does without

    raise FairtrialError(f"unknown {family[:-1].replace('_', ' ')} `{name}`{nearest(name, names(family))}")


@cache  # asked with every call of a model
def _load(where: str) -> Any:
    module, _, attribute = where.partition(":")
    part = importlib.import_module(module)
    return getattr(part, attribute) if attribute else part


def nearest(word: str, known: list[str]) -> str:
    """Return the end of an error message: the nearest known word, or all of them."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; known: {', '.join(known)}" if known else ""
