"""What a scripted agent does to a task, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fairtrial.core.file import File


class Trick(NamedTuple):
    """All that a scripted agent does: files, links, a script, an answer. It has no other effect on anything."""

    what: str  # it ends the sentence "passes with …"
    files: Mapping[str, bytes] = {}  # by name in the workspace
    removed: tuple[str, ...] = ()
    links: Mapping[str, str] = {}  # where each leads
    script: str = ""  # for `sh`, in the workspace and its sandbox
    answer: str = ""


class Left(NamedTuple):
    """What a scripted agent left: its answer, and what it changed; or why it could not do it."""

    answer: str
    changes: File | None = None
    added: tuple[str, ...] = ()
    files: Mapping[str, bytes] = {}  # what it added or modified
    problem: str = ""


class Tried(NamedTuple):
    """What came of something that was tried: its score, or why there is none."""

    value: float | None
    notes: str = ""
    problem: str = ""  # it could not even be tried

    def passes(self, mark: float) -> bool:
        """Return whether it counts as solved."""
        return self.value is not None and self.value >= mark
