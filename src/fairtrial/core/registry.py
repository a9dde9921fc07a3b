"""The doors: lookup of the parts of every family, whether they come with fairtrial, with a track or with a plug-in.

A part of the core is a file in the family's folder: the file's name is the part's name, and its class has the same name
in camel case (`scorers/json_schema.py` defines `JsonSchema` and is `json_schema` in every suite). A track lists its
parts in `PARTS`, by family and name, as `module:attribute` inside the track, or names a folder of such files. A plug-in
has entry points `fairtrial.<family>`, for the families in `DOORS`. Nothing is imported before it is asked for by name.

A plug-in that cannot be used does not break anything else: asking for it by name raises one sentence that names it, and
lists (`parts`) leave it out with that sentence as a warning.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
import sys
import warnings
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_PACKAGE = Path(__file__).parent.parent
_TRACKS = "fairtrial.tracks"
_FOLDERS = ("scorers", "targets")  # families that have a folder in the core


class Door(NamedTuple):
    """What a plug-in's part must be: an instance or a subclass of `base`, with these attributes."""

    what: str  # one of them, in words
    base: str = "builtins:object"
    has: tuple[str, ...] = ()


DOORS = {
    "scorers": Door("a scorer", base="fairtrial.core.scorer:Scorer", has=("guide",)),
    "targets": Door("a target", base="fairtrial.core.target:Target"),
    "importers": Door("an importer", has=("read",)),
    "results": Door("a reader of results", has=("recognises", "read")),
    "traces": Door("a format of traces", has=("recognises", "calls", "asides")),
    "logs": Door("a format of logs", has=("recognises", "sessions", "companions")),
    "commands": Door("a command", base="click:Command"),
    "pages": Door("a section of the web page", base="builtins:type"),
    "reports": Door("an export format", base="fairtrial.reports.format:Format"),
}


class Plugged(NamedTuple):
    """A part of a plug-in: the name of the plug-in, and the part's entry point."""

    plugin: str
    point: EntryPoint


@cache
def plugged_in(family: str) -> dict[str, Plugged]:
    """Return the parts that installed plug-ins add to a family."""
    if family not in DOORS:
        return {}
    found = [one for one in _plugged() if one.point.group == f"fairtrial.{family}"]
    return {one.point.name: one for one in reversed(found)}  # what comes first on the path wins, as with modules


@cache
def _plugged() -> list[Plugged]:
    """Return the entry points of plug-ins; only metadata that name a door are parsed: it saves 50 ms at every start."""
    files = (file for folder in dict.fromkeys(sys.path) for file in Path(folder).glob("*-info/entry_points.txt"))
    return [one for file in files for one in _points_in(file)]


def plugins() -> list[str]:
    """Return the names of the plug-ins that are installed."""
    return sorted({one.plugin for one in _plugged() if one.point.group.startswith("fairtrial.")})


def plugin_of(package: str) -> str:
    """Return the plug-in that a package of Python belongs to; empty if it is none's."""
    found = (one for one in _plugged() if one.point.group.startswith("fairtrial."))
    return next((one.plugin for one in found if one.point.module.partition(".")[0] == package), "")


def _points_in(file: Path) -> list[Plugged]:
    plugin = re.split(r"-\d", file.parent.stem)[0].replace("_", "-")
    try:
        if b"[fairtrial." not in file.read_bytes():
            return []
        from importlib.metadata import Distribution

        return [Plugged(plugin, point) for point in Distribution.at(file.parent).entry_points]
    except Exception as error:
        warnings.warn(f"the plug-in `{plugin}` cannot be used: {file} cannot be read ({error})", stacklevel=2)
        return []


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
    return [*built_in(family), *(name for name in plugged_in(family) if not _is_taken(family, name))]


def _is_taken(family: str, name: str) -> bool:
    return name.replace("-", "_") in built_in(family)


def names(family: str) -> list[str]:
    """Return the names of all parts of a family, built in or from plug-ins."""
    return sorted(listed(family))


def load(family: str, name: str) -> Any:
    """Return a part; the error for an unknown name suggests the nearest one."""
    key = name.replace("-", "_")
    if key in built_in(family):
        return _load(built_in(family)[key].where)
    from fairtrial.core.errors import FairtrialError  # msgspec: `fairtrial --help` does without

    if name not in plugged_in(family):
        raise FairtrialError(f"unknown {family[:-1].replace('_', ' ')} `{name}`{nearest(name, names(family))}")
    part, problem = _load_plugged(family, name)
    if problem:
        raise FairtrialError(problem)
    return part


@cache
def _load_plugged(family: str, name: str) -> tuple[Any, str]:
    """Return a plug-in's part, and why it cannot be used: it does not load, or is not what its door asks for."""
    point = plugged_in(family)[name].point
    try:
        part = point.load()
        problem = misfit(family, part)
    except (Exception, SystemExit) as error:
        return None, _sentence(family, name, f"cannot be used ({_reason(error)})")
    return part, problem and _sentence(family, name, f"cannot be used ({point.value} {problem})")


def misfit(family: str, part: Any) -> str:
    """Return why a part does not fit through its door; empty if it does."""
    door = DOORS[family]
    base = _load(door.base)
    if not (isinstance(part, base) or (isinstance(part, type) and issubclass(part, base))):
        return f"is not {door.what}, as `{base.__name__}` describes it"
    lacking = [attribute for attribute in door.has if not hasattr(part, attribute)]
    return f"is not {door.what}: it has no `{'`, `'.join(lacking)}`" if lacking else ""


def _reason(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _sentence(family: str, name: str, what: str) -> str:
    plugin = plugged_in(family)[name].plugin
    return f"the plug-in `{plugin}`: its {family[:-1]} `{name}` {what}; fix it, or remove it: pip uninstall {plugin}"


def problems(family: str, taken: Container[str] = ()) -> dict[str, str]:
    """Return why parts of plug-ins cannot be used, by name; `taken` are names of core parts that have no folder."""
    found = {}
    for name in plugged_in(family):
        if name in taken or _is_taken(family, name):
            found[name] = _sentence(family, name, "is not used, since fairtrial has one of that name")
        elif problem := _load_plugged(family, name)[1]:
            found[name] = problem
    return found


def parts(family: str, taken: Container[str] = ()) -> dict[str, Any]:
    """Return every part, by name and in the order of `listed`; those of plug-ins that cannot be used are left out."""
    return {name: load(family, name) for name in built_in(family)} | plugged_parts(family, taken)


def plugged_parts(family: str, taken: Container[str] = ()) -> dict[str, Any]:
    """Return the parts of plug-ins by name; a warning names each that cannot be used."""
    unusable = problems(family, taken)
    for sentence in unusable.values():
        warnings.warn(sentence, stacklevel=2)
    return {name: load(family, name) for name in plugged_in(family) if name not in unusable}


def survey(taken: Mapping[str, Container[str]]) -> Iterator[tuple[str, bool]]:
    """Say what every plug-in adds, and what of it cannot be used; with each line, whether it is good."""
    unusable = {door: problems(door, taken.get(door, ())) for door in DOORS}
    added: dict[str, list[str]] = {}
    for plugin, point in _plugged():
        group, _, door = point.group.partition(".")
        if group == "fairtrial" and door not in DOORS:
            yield f"the plug-in `{plugin}`: there is no door `{point.group}`{nearest(door, list(DOORS))}", False
        elif group == "fairtrial" and point.name in unusable[door]:
            yield unusable[door][point.name], False
        elif group == "fairtrial":
            added.setdefault(plugin, []).append(f"{door[:-1]} {point.name}")
    yield from ((f"{plugin}: {', '.join(parts)}", True) for plugin, parts in added.items())


@contextmanager
def tolerating(family: str, name: str) -> Iterator[None]:
    """Go on without a plug-in's part that fails, with a warning; those that come with fairtrial must not fail."""
    try:
        yield
    except Exception as error:
        if _is_taken(family, name):
            raise
        warnings.warn(_sentence(family, name, f"cannot be used ({_reason(error)})"), stacklevel=3)


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
