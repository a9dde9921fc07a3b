"""`order`: a task has the same result whatever was tried before."""

from __future__ import annotations

from typing import ClassVar

from fairtrial.tracks.audit.bench import Bench
from fairtrial.tracks.audit.probe import Outcome, Probe
from fairtrial.tracks.audit.probes.nothing import NOTHING, right_to_do_nothing
from fairtrial.tracks.audit.subject import Subject

AFTER_SOLUTION = "nothing done, once the solution has passed"


class Order(Probe):
    """After the solution, doing nothing still fails; after that, the solution still passes.

    It is tried when all else is done, case by case from the last one to the first, so that each comes after another.
    """

    name: ClassVar = "order"
    needs_solution: ClassVar = True

    async def look(self, subject: Subject, bench: Bench) -> Outcome:
        assert subject.solved is not None
        before = await bench.score(subject, subject.solved)
        nothing = await bench.try_out(subject, NOTHING)
        after = await bench.score(subject, subject.solved)
        if nothing.passes(subject.mark) and not right_to_do_nothing(subject):
            return Outcome("finding", AFTER_SOLUTION, 1, 3, nothing.notes)
        if not (before.passes(subject.mark) and after.passes(subject.mark)):
            failed = after if before.passes(subject.mark) else before
            return Outcome("finding", "fails", 0, 3, failed.problem or failed.notes)
        return Outcome("sound", "", 2, 3)
