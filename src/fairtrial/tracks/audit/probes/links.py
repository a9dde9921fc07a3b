"""`links`: an agent does not pass by links from the workspace to what the check expects."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import ClassVar

from fairtrial.tracks.audit.code import language_of
from fairtrial.tracks.audit.probe import Cheat
from fairtrial.tracks.audit.subject import Subject
from fairtrial.tracks.audit.trick import Trick

_MOST_PAIRS = 4


class Links(Cheat):
    """What the agent should have written leads to what it is compared with, in several ways."""

    name: ClassVar = "links"
    needs_solution: ClassVar = True
    nothing_there: ClassVar = "its check has no file that an answer could be compared with"

    def tricks(self, subject: Subject) -> Iterator[Trick]:
        for made, expected in islice(_pairs(subject), _MOST_PAIRS):
            near = os.path.relpath(expected, str(PurePosixPath(made).parent))
            for links in (
                {made: near},
                {made: f"/proc/self/cwd/{expected}"},
                {".there": ".", made: os.path.relpath(f".there/{expected}", str(PurePosixPath(made).parent))},
                {".via": expected, made: os.path.relpath(".via", str(PurePosixPath(made).parent))},
            ):
                yield Trick(f"`{made}` as a link to the check's `{expected}`", links=links)


def _pairs(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield files of the solution with files of the check, those first that are alike."""
    assert subject.solved is not None
    made = {name: body for name, body in subject.solved.files.items() if language_of(name, body) is None}
    made = {name: body for name, body in made.items() if name not in subject.made}
    data = {name: body for name, body in {**subject.made, **subject.hidden}.items() if language_of(name, body) is None}
    alike = [(name, other) for name, body in made.items() for other, text in data.items() if _same(body, text)]
    rest = [(name, other) for name in made for other in data if (name, other) not in alike]
    return iter([*alike, *rest])


def _same(one: bytes, other: bytes) -> bool:
    return one.split() == other.split()
