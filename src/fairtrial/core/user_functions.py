"""Loading of user functions: `package.module:name`, `file.py:name` next to the suite, or one that was given as such."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from fairtrial.core.functions import Functions, is_given, own_name
from fairtrial.core.trust import leave_out, may_run_code
from fairtrial.core.user_function_source import read_function, split_name


def load_function(name: str, folder: Path, given: Functions | None = None) -> Callable[..., Any]:
    """Return the named function, or raise ValueError with a one-sentence reason.

    `given` are functions without an importable name, which only this process can call.
    """
    if given and name in given:
        return given[name]
    if is_given(name):
        raise ValueError(f"`{own_name(name)}` was given in Python and has no importable name: move it into a module")
    _check_trust(name)
    return _load_by_name(name, folder, os.path.abspath(folder))  # noqa: PTH100 - asked for every trial, and links do not matter


def find_function(name: str, folder: Path) -> Callable[..., Any]:
    """Return the named function for a check of it; where code must not run, what its source says stands for it."""
    if may_run_code():
        return load_function(name, folder)
    leave_out(name)
    return read_function(name, folder)


def _check_trust(name: str) -> None:
    """Whatever the callers of these functions forget: a command that only looks runs nothing."""
    if not may_run_code():
        raise ValueError(f"{name} is code, which only a run executes; `--run-code` executes it here too")


@lru_cache(maxsize=256)
def _load_by_name(name: str, folder: Path, place: str) -> Callable[..., Any]:
    """`place` is where the folder is: the same relative path is another folder elsewhere."""
    module_name, attribute = split_name(name)
    is_file = module_name.endswith(".py")
    module = load_file(folder / module_name) if is_file else _load_module(module_name, folder)
    function = getattr(module, attribute, None)
    if not callable(function):
        raise ValueError(f"{module_name} has no function `{attribute}`")
    return function  # type: ignore[no-any-return]  # callable() is all that can be checked


def load_file(path: Path) -> ModuleType:
    """Execute a user's Python file and return it as a module; raise ValueError if that fails."""
    _check_trust(path.name)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    _make_importable(path.parent)
    spec = importlib.util.spec_from_file_location(f"fairtrial_user_{abs(hash(path.resolve()))}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a user's file may raise anything
        raise ValueError(f"{path.name} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _make_importable(folder: Path) -> None:
    """Make the modules in a folder importable like installed ones, which come first."""
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))


def _prefer_own(name: str, folder: Path) -> None:
    """Have a module of this folder found before one of the same name in the folder of another suite."""
    own = next((path for path in (folder / f"{name}.py", folder / name / "__init__.py") if path.is_file()), None)
    spec = None if own is None else importlib.util.find_spec(name)
    if own is None or spec is None or spec.origin is None or _is_installed(spec.origin):
        return
    found = Path(spec.origin).resolve()
    if found == own.resolve():
        return
    for loaded in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
        del sys.modules[loaded]
    other = str(found.parent.parent if found.name == "__init__.py" else found.parent)
    sys.path.remove(str(folder.resolve()))
    sys.path.insert(sys.path.index(other) if other in sys.path else len(sys.path), str(folder.resolve()))


def _is_installed(origin: str) -> bool:
    """Return whether a module came with Python or was installed."""
    if origin in ("built-in", "frozen"):
        return True
    path = Path(origin).resolve()
    return "site-packages" in path.parts or path.is_relative_to(Path(sys.base_prefix).resolve())


def _load_module(name: str, folder: Path) -> ModuleType:
    try:
        _make_importable(folder)
        _prefer_own(name.partition(".")[0], folder)
        return importlib.import_module(name)
    except Exception as error:  # a user's module may raise anything
        raise ValueError(f"module `{name}` cannot be imported: {type(error).__name__}: {error}") from error


def module_hash(function: Callable[..., Any], folder: Path) -> str:
    """Return a hash of the module that has a function, and of the modules next to the suite that it uses."""
    return hash_files(_module_files(inspect.getmodule(inspect.unwrap(function)), folder.resolve(), set()))


def hash_files(files: Iterable[Path]) -> str:
    """Return a hash of the contents of files, in their order; empty if there are none."""
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16] if digests else ""


def _module_files(module: ModuleType | None, folder: Path, seen: set[str]) -> Iterator[Path]:
    """Yield the file of a module, then those of the modules below the folder that it imports, or imports names from."""
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__ in seen:
        return
    seen.add(module.__name__)
    if Path(file).is_file():
        yield Path(file)
    for value in list(vars(module).values()):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        used = sys.modules.get(name) if isinstance(name, str) else None
        if _is_own(used, folder):
            yield from _module_files(used, folder, seen)


def _is_own(module: ModuleType | None, folder: Path) -> bool:
    """Return whether a module is the user's own: below the suite's folder, and not installed there."""
    file = getattr(module, "__file__", None)
    if file is None:
        return False
    path = Path(file).resolve()
    return path.is_relative_to(folder) and "site-packages" not in path.parts
