"""Which sources compute a result: a key that changes with any of them, so that nothing computed by other code is shown.

Imports are read from the text, also those inside functions: parsing every file would take a hundred times as long.
Those under `if TYPE_CHECKING:` compute nothing, and those of parts by name (families) are not followed.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_IMPORTS = re.compile(
    rb"\n(?:if TYPE_CHECKING:(?:\n+[ \t].*)+"
    rb"|[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|.*)|import[ \t]+(.*)))"
)
_NAMES = re.compile(r"([\w.]+)(?:[ \t]+as[ \t]+\w+)?[ \t]*(?:#.*)?")


@cache
def code_key(module: str) -> str:
    """Return a hash of the sources of a module of ours and of all that it imports, and of the libraries' versions."""
    return key_of_sources(_PACKAGE, module)


def key_of_sources(package: Path, module: str) -> str:
    """Return the key of a module of the package in this folder; of the package's version if it has no sources."""
    sources, libraries = read_sources(package, module)
    facts = [f"{sys.version_info.major}.{sys.version_info.minor}", *map(_release, sorted(libraries))]
    if not sources:  # a zip file, or nothing but bytecode
        facts.append(_release(package.name))
    found = hashlib.sha256("\n".join(facts).encode())
    for name in sorted(sources):
        found.update(b"\n%d %s\n" % (len(sources[name]), name.encode()))
        found.update(sources[name])
    return found.hexdigest()[:16]


def read_sources(package: Path, module: str) -> tuple[dict[str, bytes], set[str]]:
    """Return the sources of a module and of what it imports of the package, by name, and the libraries they import."""
    files = _files(package)
    sources: dict[str, bytes] = {}
    libraries: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name in sources or name not in files:  # such as a function in a module
            continue
        sources[name] = files[name].read_bytes()
        todo.append(name.rpartition(".")[0])
        for imported in _imported(sources[name]):
            top = imported.partition(".")[0]
            if top == package.name:
                todo.append(imported)
            elif top not in sys.stdlib_module_names:
                libraries.add(top)
    return sources, libraries


def _files(package: Path) -> dict[str, Path]:
    """Return the files of all modules of a package, by the modules' names."""
    found = {}
    for folder, _, names in os.walk(package):
        inside = folder[len(str(package.parent)) + 1 :].replace(os.sep, ".")
        for name in names:
            if name.endswith(".py"):
                found[inside if name == "__init__.py" else f"{inside}.{name[:-3]}"] = Path(folder, name)
    return found


def _imported(text: bytes) -> Iterator[str]:
    """Yield what a text imports: modules, and the names from modules, which may be modules too."""
    for home, names, modules in _IMPORTS.findall(b"\n" + text):
        prefix = f"{home.decode()}." if home else ""
        if home:
            yield home.decode()
        for line in (names.strip(b"()") or modules).decode().replace(",", "\n").splitlines():
            if match := _NAMES.fullmatch(line.strip()):
                yield prefix + match[1]


def _release(library: str) -> str:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return library
