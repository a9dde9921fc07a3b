"""Generate the trials of a plan, one per (case, arm, repeat), as they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairtrial.core.chat import Chat
from fairtrial.core.experiment import Arm, Case
from fairtrial.core.templates import TemplateError
from fairtrial.core.trial import Trial, TrialIds


def trials_of(cases: Iterable[Case], arms: Sequence[Arm], *, benchmark_mode: bool = False) -> Iterator[Trial]:
    """Yield trials case by case, so that arms stay level and a run that stops early can still be compared."""
    ids = [TrialIds(arm) for arm in arms]
    for case in cases:
        for repeat in range(max(arm.repeats_of(case) for arm in arms)):
            for arm, arm_ids in zip(arms, ids, strict=True):
                if repeat < arm.repeats_of(case):
                    params = arm.params_of(case, benchmark_mode=benchmark_mode)
                    rendered = _render(arm, case, repeat) if arm.condition.templates else None
                    trial_id = arm_ids.make(case, repeat, params, rendered)
                    chat = rendered if isinstance(rendered, Chat) else None
                    yield Trial(trial_id, case, arm, repeat, params, rendered=chat)


def _render(arm: Arm, case: Case, repeat: int) -> Chat | str:
    """Return what templates make of a case, or why they cannot be filled in: then the trial fails for this reason."""
    try:
        return arm.condition.render(case, repeat)
    except TemplateError as error:
        return str(error)
