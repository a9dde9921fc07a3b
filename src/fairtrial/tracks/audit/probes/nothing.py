"""`nothing`: an agent that does nothing fails."""

from __future__ import annotations

from typing import ClassVar

from fairtrial.tracks.audit.bench import Bench
from fairtrial.tracks.audit.probe import Outcome, Probe
from fairtrial.tracks.audit.subject import Subject
from fairtrial.tracks.audit.trick import Trick

NOTHING = Trick("nothing done")


class Nothing(Probe):
    """Nobody who does nothing has solved the task; and that is a score, not a failure of the check."""

    name: ClassVar = "nothing"

    async def look(self, subject: Subject, bench: Bench) -> Outcome:
        if right_to_do_nothing(subject):
            return Outcome("sound", "doing nothing is its solution")
        tried = await bench.try_out(subject, NOTHING)
        if tried.problem:
            return Outcome("finding", f"cannot be tried: {tried.problem}", 0, 1)
        if tried.value is None:
            return Outcome("finding", "no score", 0, 1, tried.notes)
        if tried.passes(subject.mark):
            return Outcome("finding", NOTHING.what, 1, 1, tried.notes)
        return Outcome("sound", "", 0, 1, tried.notes)


def right_to_do_nothing(subject: Subject) -> bool:
    """Return whether the solution leaves the workspace as it was, and says nothing."""
    solved = subject.solved
    return solved is not None and not (solved.problem or solved.files or solved.answer or _removes(subject))


def _removes(subject: Subject) -> bool:
    solution = subject.solution
    return solution is not None and bool(solution.run or solution.patch)
