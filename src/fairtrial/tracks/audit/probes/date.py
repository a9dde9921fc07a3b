"""`date`: the solution passes on another day."""

from __future__ import annotations

from typing import ClassVar

from fairtrial.tracks.audit.bench import Bench
from fairtrial.tracks.audit.places import Later, later_problem
from fairtrial.tracks.audit.probe import Outcome, Probe
from fairtrial.tracks.audit.subject import Subject


class Date(Probe):
    """A check that depends on today's date has another result next year."""

    name: ClassVar = "date"
    needs_solution: ClassVar = True

    async def look(self, subject: Subject, bench: Bench) -> Outcome:
        assert subject.solved is not None and subject.workspace is not None
        if problem := later_problem(subject.workspace):
            return Outcome("unchecked", problem)
        tried = await bench.score(subject, subject.solved, Later)
        if tried.problem:
            return Outcome("unchecked", tried.problem, 0, 1)
        passed = tried.passes(subject.mark)
        return Outcome("sound" if passed else "finding", "", int(passed), 1, tried.notes)
