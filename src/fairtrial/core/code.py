"""Finding a user's own function: `package.module:name`, or `file.py:name` beside the suite."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any


@lru_cache(maxsize=256)
def load_function(name: str, folder: Path) -> Callable[..., Any]:
    """The function of that name; ValueError says in a sentence why there is none."""
    place, colon, attribute = name.rpartition(":")
    if not colon:
        raise ValueError(f"`{name}` must be `package.module:function` or `file.py:function`")
    module = _load_file(folder / place) if place.endswith(".py") else _load_module(place, folder)
    function = getattr(module, attribute, None)
    if not callable(function):
        raise ValueError(f"{place} has no function `{attribute}`")
    return function  # type: ignore[no-any-return]  # callable(...) is all that can be known


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"fairtrial_user_{abs(hash(path.resolve()))}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a user's file may do anything
        raise ValueError(f"{path.name} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _load_module(name: str, folder: Path) -> ModuleType:
    # A module beside the suite is found like one that is installed.
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))
    try:
        return importlib.import_module(name)
    except Exception as error:  # a user's module may do anything
        raise ValueError(f"module `{name}` cannot be imported: {type(error).__name__}: {error}") from error
