"""Every (case, arm, repeat) of a plan exists from the start, as arithmetic; trials are made when they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairtrial.core.experiment import Arm, Case
from fairtrial.core.trial import Trial, TrialIds


def trials_of(cases: Iterable[Case], arms: Sequence[Arm], *, benchmark_mode: bool = False) -> Iterator[Trial]:
    """Trials case by case, so that arms stay level and a run cut short can still be compared."""
    ids = [TrialIds(arm) for arm in arms]
    for case in cases:
        for repeat in range(max(arm.repeats_of(case) for arm in arms)):
            for arm, arm_ids in zip(arms, ids, strict=True):
                if repeat < arm.repeats_of(case):
                    params = arm.params_of(case, benchmark_mode=benchmark_mode)
                    yield Trial(arm_ids.make(case, repeat, params), case, arm, repeat, params)
