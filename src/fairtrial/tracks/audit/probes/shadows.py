"""`shadows`: an agent does not pass by modules that are named like those that the check imports."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import ClassVar

from fairtrial.tracks.audit.code import SCORE
from fairtrial.tracks.audit.probe import Cheat
from fairtrial.tracks.audit.probes.hooks import folders_of
from fairtrial.tracks.audit.subject import Subject
from fairtrial.tracks.audit.trick import Trick

_USUAL = ("json", "subprocess", "pathlib", "re", "csv", "unittest", "pytest", "_pytest", "difflib", "hashlib", "random")
_WAYS = {
    "that ends the check": "import os\nos._exit(0)\n",
    "that ends the check politely": "raise SystemExit(0)\n",
    "that prints a score": f"print('{SCORE}', flush=True)\nimport os\nos._exit(0)\n",
}


class Shadows(Cheat):
    """A `json.py` in the workspace, and one for every other module that a check in Python imports."""

    name: ClassVar = "shadows"

    def tricks(self, subject: Subject) -> Iterator[Trick]:
        modules = sorted({*_USUAL, *_imported(subject)} - _own(subject))
        folders = folders_of(subject)
        for what, text in _WAYS.items():
            files = {f"{folder}{name}.py": text.encode() for folder in folders for name in modules}
            yield Trick(f"modules like `json.py` {what}", files=_new(files, subject))


def _new(files: dict[str, bytes], subject: Subject) -> dict[str, bytes]:
    return {name: body for name, body in files.items() if name not in subject.start and name not in subject.hidden}


def _own(subject: Subject) -> set[str]:
    """Return the names of modules that the task has itself."""
    solved = subject.solved.files if subject.solved is not None else {}
    return {name.rpartition("/")[2].removesuffix(".py") for name in (*subject.start, *subject.hidden, *solved)}


def _imported(subject: Subject) -> set[str]:
    """Return the modules that its check's files import, apart from those that are built into Python."""
    found: set[str] = set()
    for name, body in subject.hidden.items():
        if not name.endswith(".py"):
            continue
        try:
            tree = ast.parse(body)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.builtin_module_names)
