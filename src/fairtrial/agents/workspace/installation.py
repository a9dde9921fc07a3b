"""What a program needs to run in a sandbox, found file by file: itself, its packages, and its interpreter.

Never the folder around a `bin`: in `~/.local` are keys of other programs, next to `project/bin` are checks and stores.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

_MAX_LINKS = 40
_MAX_LINE = 1000
# Of the folder in which Python or a virtual environment is installed; `share` may be everybody's.
_OF_PYTHON = ("pyvenv.cfg", "bin", "lib", "lib64", "include", "ssl", "share/zoneinfo", "share/terminfo")
_OF_NODE = ("node", "npm", "npx", "corepack")
_OF_BREW = ("Cellar", "lib", "opt")
_PACKAGES = (Path("/opt"), Path("/snap"))  # folders of folders, one for each package
_STORES = (Path("/nix/store"), Path("/gnu/store"))  # packages that name each other by their paths


class Needed:
    """Files and folders that a program reads, and links that lead to them."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()
        self.links: dict[Path, Path] = {}

    def add_program(self, path: Path, search: str | None) -> None:
        """Add a program, what is installed with it, and what it is started by if it is a script."""
        for _ in range(_MAX_LINKS):
            if not path.is_symlink():
                break
            target = _followed(path)
            self.links[path], path = target, target
        for place in dict.fromkeys((path, path.resolve())):
            if place in self.paths or not place.is_file():
                continue
            self.paths.add(place)
            self.paths.update(part for part in _installed_with(place) if part.exists())
            for interpreter in _interpreters(place, search):
                self.add_program(interpreter, search)
            if place.name == "node":
                for name in _OF_NODE[1:]:
                    if (beside := place.with_name(name)).exists():
                        self.add_program(beside, search)

    def add_python(self) -> None:
        """Add the Python that runs fairtrial."""
        paths, links = _our_python()
        self.paths.update(paths)
        self.links.update(links)


@lru_cache
def _our_python() -> tuple[set[Path], dict[Path, Path]]:
    needed = Needed()
    needed.add_program(Path(sys.executable), None)
    for prefix in (sys.prefix, sys.base_prefix):
        needed.paths.update(part for part in _parts_of_python(Path(prefix)) if part.exists())
    return needed.paths, needed.links


def needed_by(program: str, search: str | None) -> Needed:
    """Return what a program needs, apart from the system's own folders; and what Python does, which starts others."""
    needed = Needed()
    needed.add_python()
    if found := shutil.which(program, path=search):
        needed.add_program(Path(found).absolute(), search)
    return needed


def _followed(link: Path) -> Path:
    """Return where a link leads, by the names that lead to itself if these are good for it."""
    target = link.readlink()
    by_name = Path(os.path.normpath(link.parent / target))
    return by_name if by_name.exists() else link.parent.resolve() / target


def _installed_with(program: Path) -> Iterable[Path]:
    parents = program.parents
    if packages := [parent for parent in parents if parent.name == "node_modules"]:
        return [packages[-1]]  # those around it too: packages are found in all of them
    if brews := [parent.parent for parent in parents if parent.name == "Cellar"]:
        return [brews[-1] / name for name in _OF_BREW]
    if stores := [store for store in _STORES if store in parents]:
        return stores
    own = [parent for parent in parents if parent.parent in _PACKAGES]
    prefix = program.parent.parent
    if program.parent.name == "bin" and (prefix / "pyvenv.cfg").is_file():
        return [*own, *_parts_of_python(prefix), *_base_of(prefix)]
    if program.parent.name == "bin" and program.name.startswith("python"):
        return [*own, *_parts_of_python(prefix)]
    return own


def _parts_of_python(prefix: Path) -> Iterator[Path]:
    if prefix != Path("/usr"):
        yield from (prefix / name for name in _OF_PYTHON)


def _base_of(environment: Path) -> Iterator[Path]:
    """Yield the Python that a virtual environment was made with."""
    try:
        lines = (environment / "pyvenv.cfg").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "home" and value.strip():
            yield from _parts_of_python(Path(value.strip()).parent)
            yield from _parts_of_python(Path(value.strip()).resolve().parent)


def _interpreters(script: Path, search: str | None) -> Iterator[Path]:
    """Yield the program in a script's first line, and the one that `env` finds for it."""
    try:
        with script.open("rb") as file:
            line = file.readline(_MAX_LINE)
    except OSError:
        return
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if words and (found := shutil.which(words[0], path=search)):
        yield Path(found).absolute()
