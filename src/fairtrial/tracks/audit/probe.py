"""The contract of a probe: it tries a task in one way, and says whether the task is sound in this respect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from fairtrial.tracks.audit.bench import Bench
from fairtrial.tracks.audit.result import Status
from fairtrial.tracks.audit.subject import Subject
from fairtrial.tracks.audit.trick import Trick, Tried

_MOST_NAMED = 3


class Outcome(NamedTuple):
    """What a probe found out about a task."""

    status: Status
    what: str = ""
    passed: int = 0
    tried: int = 0
    notes: str = ""


class Probe:
    """Tries a task in one way. One per file in `probes/`, with a name and a title in `words.py`."""

    name: ClassVar[str]
    for_questions: ClassVar[bool] = False  # whether it concerns cases without a workspace
    for_workspaces: ClassVar[bool] = True
    needs_solution: ClassVar[bool] = False

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats

    def concerns(self, subject: Subject) -> bool:
        """Return whether there is anything to try."""
        return self.for_questions if subject.workspace is None else self.for_workspaces

    async def look(self, subject: Subject, bench: Bench) -> Outcome:
        """Try the task."""
        raise NotImplementedError


class Cheat(Probe):
    """Ways to pass without having done the task: none of them may."""

    nothing_there: ClassVar[str] = ""  # why there was nothing to try

    def tricks(self, subject: Subject) -> Iterable[Trick]:
        """Yield what a scripted agent tries."""
        raise NotImplementedError

    async def look(self, subject: Subject, bench: Bench) -> Outcome:
        tricks = list(self.tricks(subject))
        if not tricks:
            return Outcome("sound", self.nothing_there)
        return judged(tricks, await asyncio.gather(*(bench.try_out(subject, one) for one in tricks)), subject.mark)


def judged(tricks: Sequence[Trick], tried: Sequence[Tried], mark: float) -> Outcome:
    """Return what came of tricks of which none may pass."""
    passed = [(trick, one) for trick, one in zip(tricks, tried, strict=True) if one.passes(mark)]
    if passed:
        names = list(dict.fromkeys(trick.what for trick, _ in passed))
        more = f", and in {len(names) - _MOST_NAMED} other ways" if len(names) > _MOST_NAMED else ""
        what = ", with ".join(names[:_MOST_NAMED]) + more
        return Outcome("finding", what, len(passed), len(tricks), passed[0][1].notes)
    problems = [one.problem for one in tried if one.problem]
    if len(problems) == len(tried):
        return Outcome("unchecked", problems[0], 0, len(tricks))
    return Outcome("sound", "", 0, len(tricks))
