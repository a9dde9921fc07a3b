"""What a change has changed: what was asked again and what was reused, and the cases that got worse."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from fairtrial.analyse.gate_reasons import ChangedSince
from fairtrial.analyse.score_table import SCORE, ArmScores, RunSource, read_scores
from fairtrial.analyse.stored_run import StoredRun, TrialRecord
from fairtrial.core.expected import show_expected
from fairtrial.core.experiment import Arm
from fairtrial.stats.units import Measured
from fairtrial.store import ledger
from fairtrial.store.totals import reused_answers

_WORSE = 10  # cases to show


class Worse(msgspec.Struct, frozen=True, kw_only=True):
    """A case that scores less than before, with its best answer before and its worst answer now."""

    case: str
    arm: str
    question: str
    expected: str
    before: str
    after: str
    score_before: Measured
    score_after: Measured


class BaselineChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What differs from the baseline, and what that cost."""

    differences: list[ChangedSince]
    answers: int
    reused: int
    cost_usd: float
    cost_known: bool
    worse: list[Worse] = []

    @property
    def changed(self) -> list[str]:
        """What answers and scores depend on, and is not as it was."""
        return list(map(str, self.differences))

    @property
    def asked(self) -> int:
        """How many answers were asked for."""
        return self.answers - self.reused


def changes_between(source: RunSource, against: RunSource | None, *, answers: bool = True) -> BaselineChanges:
    """Say what changed since the baseline, what was reused, and with `answers` what got worse."""
    given, reused = map(sum, zip(*(reused_answers(run.store, run.id) for run in source.runs), strict=True))
    costs = [ledger.spent(run.store, run.id) for run in source.runs]
    return BaselineChanges(
        differences=[] if against is None else list(_changed(source.runs[0], against.runs[0])),
        answers=given,
        reused=reused,
        cost_usd=sum(cost.known for cost in costs),
        cost_known=not any(cost.unknown for cost in costs),
        worse=list(_worse(source, against)) if against is not None and answers else [],
    )


def _changed(after: StoredRun, before: StoredRun) -> Iterator[ChangedSince]:
    """Yield what differs between two runs, of everything that answers and scores depend on."""
    arms = {arm.name: arm for arm in before.plan_arms}
    for arm in after.plan_arms:
        if arm.name not in arms:
            yield ChangedSince(what="new", arms=[arm.name])
        elif parts := _parts(arm, arms[arm.name]):
            yield ChangedSince(what="parts", arms=[arm.name], parts=parts)
    gone = [name for name in arms if name not in {arm.name for arm in after.plan_arms}]
    if gone:
        yield ChangedSince(what="gone", arms=gone)
    if after.plan.dataset_sha256 != before.plan.dataset_sha256:
        yield ChangedSince(what="cases")
    judges = [run.settings.get("judges") for run in (after, before)]
    if judges[0] != judges[1]:
        yield ChangedSince(what="judges")


def _parts(new: Arm, old: Arm) -> list[str]:
    code = [arm.target.code for arm in (new, old)]
    targets = [{**arm.target.identity(), "code": "", "folder": ""} for arm in (new, old)]
    differs = {
        "target": targets[0] != targets[1],
        "code": code[0] != code[1],
        "prompt": new.condition.identity() != old.condition.identity(),
        "parameters": new.params != old.params,
        "scorer": (new.scorer, new.extract) != (old.scorer, old.extract),
        "workspace": new.workspace != old.workspace,
    }
    return [name for name, different in differs.items() if different]


def _worse(source: RunSource, against: RunSource) -> Iterator[Worse]:
    scores = read_scores([source, against])
    before = {one.arm.name: one for one in scores.arms if one.source is against}
    losses: list[tuple[float, int, ArmScores, ArmScores]] = []
    for after in (one for one in scores.arms if one.source is source and one.arm.name in before):
        lost = before[after.arm.name].means(SCORE) - after.means(SCORE)
        for row in np.argsort(-np.nan_to_num(lost, nan=-1.0), kind="stable")[:_WORSE]:
            if lost[row] > 0:
                losses.append((float(lost[row]), int(row), after, before[after.arm.name]))
    for _, row, after, earlier in sorted(losses, key=lambda one: -one[0])[:_WORSE]:
        new, old = _extreme(after, row, best=False), _extreme(earlier, row, best=True)
        if new is not None and old is not None:
            yield Worse(
                case=new.case_id,
                arm=after.arm.name,
                question=new.input,
                expected=show_expected(new.expected),
                before=old.answer or "",
                after=new.answer or "",
                score_before=float(earlier.means(SCORE)[row]),
                score_after=float(after.means(SCORE)[row]),
            )


def _extreme(entry: ArmScores, row: int, *, best: bool) -> TrialRecord | None:
    """Return the scored trial of a case with the best or the worst score."""
    found: list[TrialRecord] = []
    for run, rows, position in entry.origins:
        for place in np.flatnonzero(rows == row).tolist():
            trials = run.placed_trials(place, 1)
            found += [trial for at, trial in trials if at.arm == position and trial.score is not None]
    return (max if best else min)(found, key=lambda trial: trial.score or 0.0, default=None)
