"""`stub`: files that are there and do nothing fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fairtrial.agents.workspace.judging import is_test
from fairtrial.tracks.audit.code import stub
from fairtrial.tracks.audit.probe import Cheat
from fairtrial.tracks.audit.subject import Subject
from fairtrial.tracks.audit.trick import Trick


class Stub(Cheat):
    """The files of the solution, with functions that return nothing and without content."""

    name: ClassVar = "stub"
    nothing_there: ClassVar = "there is no file to make a stub of"

    def tricks(self, subject: Subject) -> Iterator[Trick]:
        files = subject.solved.files if subject.solved is not None else subject.start
        stubs = {name: stub(name, body) for name, body in files.items() if not is_test(name)}
        stubs = {name: body for name, body in stubs.items() if body != files[name]}
        if stubs:
            yield Trick("functions that return nothing", files=stubs)
            if any(stubs.values()):
                yield Trick("empty files", files=dict.fromkeys(stubs, b""))
