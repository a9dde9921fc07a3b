"""The package's imports, read from the syntax tree: those inside functions count like all others."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SRC = Path(__file__).parents[1] / "src"
PACKAGE = "fairtrial"


class Import(NamedTuple):
    """One module that another imports."""

    module: str  # that imports
    imported: str
    line: int
    inside: bool  # a function
    reason: str  # the comment on its line or the one above
    typed: bool  # for type checkers only


@cache
def modules(root: Path = SRC) -> dict[str, Path]:
    """Return every module by its name."""
    found = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(module: str, text: str, known: set[str]) -> Iterator[Import]:
    """Yield what a module imports of the package."""
    lines = text.split("\n")

    def visit(node: ast.AST, inside: bool, typed: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            within = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for_types = typed or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test))
            for name in dict.fromkeys(_named(child, known)):
                comments = (lines[child.end_lineno - 1], lines[child.lineno - 2])
                reason = next((c.partition("# ")[2] for c in comments[:1] if "# " in c), "")
                reason = reason or (comments[1].strip()[2:] if comments[1].strip().startswith("# ") else "")
                if name != module:
                    yield Import(module, name, child.lineno, within, reason, for_types)
            yield from visit(child, within, for_types)

    return visit(ast.parse(text), False, False)


def _named(node: ast.AST, known: set[str]) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            yield from _home(f"{node.module}.{alias.name}", known)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            yield from _home(alias.name, known)


def _home(name: str, known: set[str]) -> Iterator[str]:
    while name.split(".")[0] == PACKAGE and name not in known:
        name = name.rpartition(".")[0]
    if name.split(".")[0] == PACKAGE:
        yield name


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components with more than one module (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def go(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in order:
                go(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == order[module]:
            place = stack.index(module)
            if len(stack) - place > 1:
                found.append(sorted(stack[place:]))
            del stack[place:]

    for module in graph:
        if module not in order:
            go(module)
    return found


def phrases(text: str) -> Iterator[tuple[int, str]]:
    """Yield the texts of several words in a module, with their lines; `{}` stands for what a text is filled with.

    Docstrings are no texts, and exceptions may say what users read.
    """

    def visit(node: ast.AST) -> Iterator[tuple[int, str]]:
        shown = ""
        if isinstance(node, ast.Raise) or _is_docstring(node) or _is_error(node):
            return
        if isinstance(node, ast.JoinedStr):
            shown = "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            shown = node.value
        if " " in shown and any(letter.isalpha() for letter in shown):
            yield node.lineno, shown
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
                yield from visit(child)

    return visit(ast.parse(text))


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_error(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error")
