"""`solution`: what is known to be right passes, every time."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from fairtrial.tracks.audit.bench import Bench
from fairtrial.tracks.audit.probe import Outcome, Probe
from fairtrial.tracks.audit.subject import Subject, references
from fairtrial.tracks.audit.trick import Tried


class SolutionProbe(Probe):
    """The solution passes as often as it is tried: if not, the task is broken, or its check, or that has moods."""

    name: ClassVar = "solution"
    for_questions: ClassVar = True

    async def look(self, subject: Subject, bench: Bench) -> Outcome:
        given = references(subject)
        if not given:
            return Outcome("missing")
        if given[0].problem:
            return Outcome("finding", f"cannot be tried: {given[0].problem}")
        tried = await asyncio.gather(
            *(bench.score(subject, given[0]) for _ in range(self.repeats)),
            *(bench.score(subject, other) for other in given[1:]),
        )
        passed = sum(one.passes(subject.mark) for one in tried)
        if passed < len(tried) and subject.solution is None and subject.scorer.extract is not None:
            return Outcome("missing", "`expected` alone is not an answer that its `extract` finds")
        notes = next((_said(one) for one in tried if not one.passes(subject.mark)), "")
        return Outcome("finding" if passed < len(tried) else "sound", "", passed, len(tried), notes)


def _said(tried: Tried) -> str:
    score = "" if tried.value is None else f"{100 * tried.value:.0f} points"
    return ", ".join(filter(None, (score, tried.problem or tried.notes)))
