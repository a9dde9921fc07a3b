"""Imports of a check: what is installed comes before what an agent has left in the workspace.

Run on its own, in whichever Python a check is written for; `sitecustomize.py` and `referee.py` next to it use it.
"""

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_OF_PROJECTS = frozenset({"test", "tests", "conftest", "setup", "__main__"})  # names that projects use for their own


class Changed:
    """What an agent has added or changed in a workspace, from a file that lists it."""

    def __init__(self, workspace: str, listed: str) -> None:
        self.workspace = os.path.realpath(workspace)
        try:
            with open(listed, encoding="utf-8", errors="surrogateescape") as file:
                self._names = frozenset(file.read().split("\0"))
        except OSError:
            self._names = frozenset()
        self._known: dict[str, str | None] = {}

    def name(self, path: str) -> "str | None":
        """Return the name of a file in the workspace; None for a file elsewhere."""
        if path not in self._known:
            real = os.path.realpath(path)
            inside = real.startswith(self.workspace + os.sep)
            self._known[path] = os.path.relpath(real, self.workspace) if inside else None
        return self._known[path]

    def has(self, path: str) -> bool:
        """Return whether a file is the agent's work."""
        return self.name(path) in self._names


class _Trusted:
    """Finds modules next to the check that are not the agent's work, then where they are installed."""

    def __init__(self, changed: Changed, folder: str, installed: "list[str]") -> None:
        self._changed, self._folder, self._installed = changed, folder, installed

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Return where a module is; None leaves it to the usual ways, which look in the workspace."""
        if path is not None or name in _OF_PROJECTS:
            return None
        for file in (name + ".py", os.path.join(name, "__init__.py")):
            beside = os.path.join(self._folder, file)
            if os.path.isfile(beside) and not self._changed.has(beside):
                return PathFinder.find_spec(name, [self._folder], target)
        found = PathFinder.find_spec(name, self._installed, target)
        return found if found is not None and found.loader is not None else None


def trust_installed(changed: Changed, folder: str) -> None:
    """Look for modules in this folder of a workspace first, but for the agent's after all that is installed."""
    mine = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if place and os.path.abspath(place) != mine]
    installed = [place for place in sys.path if changed.name(os.path.join(place, "x")) is None]
    sys.meta_path.insert(0, _Trusted(changed, folder, installed))
