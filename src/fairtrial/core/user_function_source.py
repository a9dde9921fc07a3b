"""What the source of a user's function says about it, without running anything."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from fairtrial.core.trust import within

_MOST_BYTES = 2**20
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_BINDINGS = ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom | ast.ClassDef | _FUNCTIONS


def split_name(name: str) -> tuple[str, str]:
    """Return the module (or file) and the function that a name consists of."""
    module, colon, attribute = name.rpartition(":")
    if not colon:
        raise ValueError(f"`{name}` must be `package.module:function` or `file.py:function`")
    return module, attribute


class Unread:
    """Stands for a function: it has the signature that its source gives, if there is one, and cannot be called."""

    def __init__(self, parameters: list[inspect.Parameter] | None = None) -> None:
        if parameters is not None:
            self.__signature__ = inspect.Signature(parameters)

    def __call__(self) -> None:
        raise AssertionError("a function that was only looked at cannot be called")


def read_function(name: str, folder: Path) -> Unread:
    """Return what stands for the named function; raise ValueError with a reason if it is certain that there is none."""
    module, attribute = split_name(name)
    file = folder / module if module.endswith(".py") else _module_file(module, folder)
    if file is None:
        raise ValueError(f"module `{module}` cannot be imported: it is neither next to the suite nor installed")
    if _is_beside(file, folder):
        within(folder, file.absolute())
    if module.endswith(".py") and not file.is_file():
        raise ValueError(f"there is no file {file}")
    return _found(file, module, attribute) if file.suffix == ".py" else Unread()


def _is_beside(file: Path, folder: Path) -> bool:
    """Return whether a file is one that the suite brings along, and not an installed one."""
    return file.absolute().is_relative_to(folder.absolute()) or not _is_installed(file)


def _is_installed(file: Path) -> bool:
    return any(place and file.absolute().is_relative_to(Path(place).absolute()) for place in sys.path)


def _found(path: Path, module: str, attribute: str) -> Unread:
    status = path.stat()
    if status.st_size > _MOST_BYTES:
        return Unread()
    tree = _tree(path, status.st_mtime_ns, status.st_size)
    bound = {name: node for node in _statements(tree) for name in _names(node)}
    node = bound.get(attribute)
    if node is None:
        if "*" in bound or "__getattr__" in bound:  # it may come from anywhere
            return Unread()
        raise ValueError(f"{module} has no function `{attribute}`")
    if isinstance(node, _FUNCTIONS) and not node.decorator_list:  # a decorator may change what it takes
        return Unread(_parameters(node.args))
    return Unread()


@lru_cache(maxsize=64)
def _tree(path: Path, changed: int, size: int) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ValueError(f"{path.name} cannot be imported: {reason}") from None


def _statements(node: ast.AST) -> Iterator[Any]:
    """Yield the statements that bind names of a module, in `if` and `try` too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _BINDINGS):
            yield child
        elif isinstance(child, ast.stmt | ast.excepthandler):
            yield from _statements(child)


def _names(node: Any) -> Iterator[str]:
    if isinstance(node, _FUNCTIONS | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    else:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (found.id for target in targets for found in ast.walk(target) if isinstance(found, ast.Name))


def _parameters(args: ast.arguments) -> list[inspect.Parameter]:
    kinds = inspect.Parameter
    plain: list[tuple[ast.arg, Any]] = [(arg, kinds.POSITIONAL_ONLY) for arg in args.posonlyargs]
    plain += [(arg, kinds.POSITIONAL_OR_KEYWORD) for arg in args.args]
    needed = len(plain) - len(args.defaults)
    found = [_parameter(arg, kind, given=place >= needed) for place, (arg, kind) in enumerate(plain)]
    if args.vararg:
        found.append(_parameter(args.vararg, kinds.VAR_POSITIONAL))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found.append(_parameter(arg, kinds.KEYWORD_ONLY, given=default is not None))
    if args.kwarg:
        found.append(_parameter(args.kwarg, kinds.VAR_KEYWORD))
    return found


def _parameter(arg: ast.arg, kind: Any, *, given: bool = False) -> inspect.Parameter:
    return inspect.Parameter(arg.arg, kind, default=None if given else inspect.Parameter.empty)


def _module_file(name: str, folder: Path) -> Path | None:
    """Return the file of a module next to the suite or installed; its packages are not imported to find it."""
    first, *rest = name.split(".")
    if not all(part.isidentifier() for part in (first, *rest)):
        return None
    spec = importlib.util.find_spec(first)  # of a first name, this runs nothing; installed ones come first
    if spec is None:
        return _file_of(folder / first, rest)
    if not rest or spec.submodule_search_locations is None:
        return Path(spec.origin or first)
    found = (_file_of(Path(place), rest) for place in spec.submodule_search_locations)
    return next((path for path in found if path is not None), None)


def _file_of(root: Path, parts: list[str]) -> Path | None:
    """Return the file of a module whose path without ending is known."""
    path = root.joinpath(*parts)
    for file in (path.with_name(f"{path.name}.py"), path / "__init__.py", *path.parent.glob(f"{path.name}.*.so")):
        if file.is_file():
            return file
    return path if path.is_dir() else None
