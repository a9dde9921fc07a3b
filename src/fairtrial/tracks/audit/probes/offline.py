"""`offline`: the solution passes where the check has no network."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from fairtrial.tracks.audit.bench import Bench
from fairtrial.tracks.audit.places import Offline, offline_problem
from fairtrial.tracks.audit.probe import Outcome, Probe
from fairtrial.tracks.audit.subject import Subject


class OfflineProbe(Probe):
    """A check that needs a network fails on the day on which an address is gone."""

    name: ClassVar = "offline"
    needs_solution: ClassVar = True

    async def look(self, subject: Subject, bench: Bench) -> Outcome:
        assert subject.solved is not None and subject.workspace is not None
        spec = subject.workspace
        if spec.sandbox != "none" and spec.network is False:
            return Outcome("sound", "its check has no network anyway")
        if problem := offline_problem() if spec.sandbox == "none" else "":
            return Outcome("unchecked", problem)
        alone = msgspec.structs.replace(spec, network=False)
        tried = await bench.score(subject, subject.solved, Offline, alone)
        if tried.problem:
            return Outcome("unchecked", tried.problem, 0, 1)
        passed = tried.passes(subject.mark)
        return Outcome("sound" if passed else "finding", "", int(passed), 1, tried.notes)
