"""Writes the stubs of `fairtrial` and `fairtrial.plugins`: the names are those of their tables, and a verb is written once.

Part of `python -m docs.generate`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import fairtrial
from fairtrial import plugins

NOTE = "# Written by `python -m docs.generate`; do not edit.\n"
PATHS = [Path(str(module.__file__)).with_suffix(".pyi") for module in (fairtrial, plugins)]
_INDENT = " " * 4


@cache
def stubs() -> dict[Path, str]:
    """Return the text of each stub."""
    verbs = [verb for written in fairtrial._VERBS.values() for verb in written]
    imports = [f"from {home.rpartition('.')[0]} import {name}" for name, home in fairtrial._MODULES.items()]
    imports += ["from fairtrial.pipeline import load as load_suite", *_imports(fairtrial._HOMES)]
    forms: list[str] = []
    for verb in sorted(verbs):
        for name in (verb, f"a{verb}"):
            written = _Written(inspect.unwrap(getattr(fairtrial, name)))
            imports += written.imports()
            forms += written.forms(name, inspect.getdoc(getattr(fairtrial, name)) or "", is_async=name != verb)
    of_library, of_plugins = PATHS
    return {
        of_library: _stub(of_library, fairtrial, imports, forms),
        of_plugins: _stub(of_plugins, plugins, _imports(plugins._HOMES), []),
    }


def _imports(homes: dict[str, tuple[str, ...]]) -> list[str]:
    return [f"from {home} import {name}" for home, names in homes.items() for name in names]


def _stub(path: Path, module: ModuleType, imports: list[str], forms: list[str]) -> str:
    doc = f'"""{module.__doc__}"""'
    listed = f"__all__ = [{', '.join(map(repr, module.__all__))},]"
    text = "\n\n".join([doc, "\n".join(dict.fromkeys(imports)), listed, *forms])
    for command in (["check", "--fix-only", "--quiet", "--select", "I"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return NOTE + text


class _Written:
    """A verb as its module writes it, with its overloads if it has any."""

    def __init__(self, function: Any) -> None:
        self._home = function.__module__
        self._source = Path(inspect.getfile(function)).read_text("utf-8")
        self._tree = ast.parse(self._source)
        definitions = [
            node
            for node in self._tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function.__name__
        ]
        self._definitions = [node for node in definitions if node.decorator_list] or definitions

    def forms(self, name: str, doc: str, *, is_async: bool) -> Iterator[str]:
        """Yield its signatures under a name, the first with the docstring."""
        quoted = f'"""{doc}"""' if "\n" not in doc else f'"""{doc}\n"""'
        body = f"{quoted}\n".replace("\n", f"\n{_INDENT}").rstrip()
        for definition in self._definitions:
            overloaded = "@overload\n" if len(self._definitions) > 1 else ""
            yield f"{overloaded}{'async ' * is_async}def {name}{self._signature(definition)}:\n{_INDENT}{body}"
            body = "..."

    def _signature(self, definition: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        assert definition.returns is not None
        lines = self._source.split("\n")[definition.lineno - 1 : definition.returns.end_lineno]
        lines[-1] = lines[-1][: definition.returns.end_col_offset]
        return "\n".join(lines).partition(definition.name)[2]

    def imports(self) -> Iterator[str]:
        """Yield the imports of what its signatures name."""
        homes = {
            alias.asname or alias.name: f"from {node.module} import {alias.name}"
            + (f" as {alias.asname}" if alias.asname else "")
            for node in ast.walk(self._tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        if len(self._definitions) > 1:
            yield homes["overload"]
        for definition in self._definitions:
            for node in [*ast.walk(definition.args), *ast.walk(definition.returns or definition.args)]:
                if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
                    yield homes.get(node.id, f"from {self._home} import {node.id}")
