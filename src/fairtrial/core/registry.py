"""Lookup of scorers, targets and importers: a file in the family's folder, or an entry point `fairtrial.<family>`.

The file name is the part's name, and its class has the same name in camel case: `scorers/json_schema.py` defines
`JsonSchema` and is `json_schema` in every suite.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any

from fairtrial.core.errors import FairtrialError

_PACKAGE = Path(__file__).parent.parent


@cache
def _plugins(family: str) -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=f"fairtrial.{family}")}


@cache
def builtin_names(family: str) -> tuple[str, ...]:
    """Return the names of the parts that come with fairtrial."""
    modules = (module.name for module in pkgutil.iter_modules([str(_PACKAGE / family)]))
    return tuple(sorted(name for name in modules if not name.startswith("_")))


def names(family: str) -> list[str]:
    """Return the names of all parts of a family, built in or from plug-ins."""
    return sorted({*builtin_names(family), *_plugins(family)})


def load(family: str, name: str) -> Any:
    """Return the class of a part; the error for an unknown name suggests the nearest one."""
    key = name.replace("-", "_")
    if key in builtin_names(family):
        return _builtin(family, key)
    if name in _plugins(family):
        return _plugins(family)[name].load()
    raise FairtrialError(f"unknown {family[:-1]} `{name}`{nearest(name, names(family))}")


@cache  # asked with every call of a model
def _builtin(family: str, key: str) -> Any:
    module = importlib.import_module(f"fairtrial.{family}.{key}")
    return getattr(module, "".join(word.capitalize() for word in key.split("_")))


def nearest(word: str, known: list[str]) -> str:
    """Return the end of an error message: the nearest known word, or all of them."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; known: {', '.join(known)}" if known else ""
