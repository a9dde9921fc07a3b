"""Which tests a change calls for: `python -m tests.parts COMMIT` prints them, for all that changed since that commit.

A changed module calls for the tests of its folder and for every test that imports it or a module that imports it. The
whole way of imports would lead from almost any module to five tests in six, and modules of families are imported by name.
A surface that people read calls for the tests of all surfaces too. What cannot be told calls for every test.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
EVERY = ["tests"]
_STEPS = 2  # imports from a test to a changed module
_CODE = ("src/fairtrial", "tests", "benchmarks", "docs")
_IMPORT = re.compile(r"^\s*(?:from ([\w.]+) import (\([^)]*\)|[^\n(]*)|import ([\w., ]+))", re.MULTILINE)
_TABLE = re.compile(
    r'^    "(fairtrial(?:\.\w+)+)": \(', re.MULTILINE
)  # a row of a table of public names: where some of them are
_SAYING = ("analyse", "api", "cli", "present", "reports", "tracks", "web")  # packages that write what people read
_DOCS = ("tests/test_docs.py", "tests/test_names.py", "tests/test_site.py")
_SURFACES = ("tests/contracts", "tests/surfaces", "tests/hints", *_DOCS)
_SHARED = ("tests/conftest.py", "tests/__init__.py")
_PAGES = ("docs", "examples", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md")


def changed_since(commit: str) -> list[str] | None:
    """Return the files that differ from where this branch left `commit`; None where git does not know it."""
    base = _git("merge-base", commit, "HEAD")
    if base is None:
        return None
    return [
        *(_git("diff", "--name-only", "--no-renames", *base) or []),
        *(_git("ls-files", "--others", "--exclude-standard") or []),
    ]


def _git(*args: str) -> list[str] | None:
    found = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.splitlines() if found.returncode == 0 else None


def tests_for(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the folders and files of the tests that these files call for."""
    graph = _Imports(root)
    wanted: set[str] = set()
    for name in changed:
        called_for = {path for path in _called_for(name, graph, root) if (root / path).exists()}
        if not called_for and (root / name).exists():
            return EVERY
        wanted |= called_for
    folders = {path for path in wanted if (root / path).is_dir()}
    return sorted(path for path in wanted if not path.startswith(tuple(f"{one}/" for one in folders)))


def _called_for(name: str, graph: _Imports, root: Path) -> set[str]:
    """Return what one file calls for; nothing where that cannot be told."""
    top, *parts = Path(name).parts
    if top == "src":
        said = _SURFACES if len(parts) == 2 or parts[1] in _SAYING else _SURFACES[:1]
        return {_folder_of_tests(parts[1:-1], root), *graph.tests_of(name), *said}
    if top == "tests" and parts[0] == "data" and not name.endswith(".py"):
        return {_folder_of_tests(parts[1:-1], root), *graph.naming(parts[1])}
    if top in ("tests", "benchmarks", "docs") and name.endswith(".py") and name not in _SHARED:
        return graph.tests_of(name)
    return {*graph.naming(top), *_DOCS} if top in _PAGES else set()


def _folder_of_tests(package: list[str], root: Path) -> str:
    """Return the folder of tests of a package, or of the nearest one around it that has one."""
    while package and not Path(root, "tests", *package).is_dir():
        package = package[:-1]
    return Path("tests", *package).as_posix() if package else "tests/contracts"


class _Imports:
    """Who imports whom, also inside of functions."""

    def __init__(self, root: Path) -> None:
        self._texts = {
            path.relative_to(root).as_posix(): path.read_text("utf-8")
            for folder in _CODE
            for path in sorted((root / folder).rglob("*.py"))
        }
        self._importers: dict[str, set[str]] = defaultdict(set)
        for name, text in self._texts.items():
            for module in _imported(text):
                self._importers[module].add(name)

    def tests_of(self, name: str) -> set[str]:
        """Return the tests that are a few imports away from a file; a file that is no module counts as its folder's."""
        modules = (
            {name} if name.endswith(".py") else {one for one in self._texts if Path(one).parent == Path(name).parent}
        )
        reached = set(modules)
        for _ in range(_STEPS):
            modules = {by for one in modules for by in self._importers[_module(one)]} - reached - {*_SHARED}
            reached |= modules
        return {one for one in reached if _is_test(one)}

    def naming(self, word: str) -> set[str]:
        """Return the tests whose text has this word as a part of a path."""
        form = re.compile(rf"[\"'/]{re.escape(word)}[\"'/]")
        return {name for name, text in self._texts.items() if _is_test(name) and form.search(text)}


def _is_test(name: str) -> bool:
    return name.startswith("tests/") and Path(name).name.startswith("test_")


def _module(name: str) -> str:
    """Return the name by which a file is imported."""
    return name.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(text: str) -> Iterator[str]:
    """Yield what a module imports: modules, and names that may be modules; also what it has names of."""
    yield from _TABLE.findall(text)
    for package, names, modules in _IMPORT.findall(text):
        yield from re.findall(r"[\w.]+", modules)
        if package:
            yield package
            yield from (f"{package}.{name}" for name in re.findall(r"\w+", re.sub("#.*", "", names)))


if __name__ == "__main__":
    files = changed_since(sys.argv[1])
    print(*(EVERY if files is None else tests_for(files)))
