"""What a condition brings: the paired difference to the baseline on the same cases, for the score and every metric."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairtrial.analyse.common import Common, common_cases
from fairtrial.core.errors import FairtrialError
from fairtrial.core.score import Scale
from fairtrial.core.suite import Arm
from fairtrial.stats import Paired
from fairtrial.store import Store, totals
from fairtrial.store.store import RunRecord


class Lift(msgspec.Struct, frozen=True, kw_only=True):
    """One arm over another of the same target; `metric` is empty for the score (0–1), else on its own scale."""

    arm: str
    baseline: str
    metric: str
    scale: Scale
    paired: Paired


def lifts(store: Store, record: RunRecord, arms: Sequence[Arm], baseline: str | None = None) -> list[Lift]:
    """Every condition over the first one, or over the one named, target by target."""
    names = list(dict.fromkeys(arm.condition.name for arm in arms))
    if baseline is not None and baseline not in names:
        raise FairtrialError(f"this run has no condition `{baseline}`; its conditions: {', '.join(names)}")
    if len(names) < 2:
        return []
    scores = totals.trial_scores(store, record.id, record.plan_id, record.scoring, [arm.position for arm in arms])
    metrics = totals.metric_scores(store, record.id, record.plan_id, record.scoring)
    found = []
    for target in dict.fromkeys(arm.target.id for arm in arms):
        own = [arm for arm in arms if arm.target.id == target]
        base = next((arm for arm in own if arm.condition.name == baseline), own[0])
        for arm in (arm for arm in own if arm is not base):
            cases = (scores[base.position].weights, scores[base.position].clusters)
            score = common_cases(scores[arm.position].means(), scores[base.position].means(), *cases)
            found.append(_lift(arm, base, "", (0.0, 1.0), score))
            others = metrics.get(base.position, {})
            for name, values in metrics.get(arm.position, {}).items():
                if name in others:
                    pair = common_cases(values.means(), others[name].means(), *cases)
                    found.append(_lift(arm, base, name, values.scale, pair))
    return found


def _lift(arm: Arm, base: Arm, metric: str, scale: Scale, cases: Common) -> Lift:
    return Lift(arm=arm.name, baseline=base.name, metric=metric, scale=scale, paired=cases.difference(scale))
