"""What a condition brings: the paired difference to the baseline on the same cases, for the score and every metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.core.suite import Arm
from fairtrial.stats import Paired, paired
from fairtrial.store import Store, totals
from fairtrial.store.store import RunRecord


class Lift(msgspec.Struct, frozen=True, kw_only=True):
    """One arm over another of the same target; `metric` is empty for the score (0–1), else on its own scale."""

    arm: str
    baseline: str
    metric: str
    scale: tuple[float, float]
    paired: Paired


Values = Mapping[int, float]


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
            cases = _Cases(scores[base.position].weights, scores[base.position].clusters)
            score = cases.paired(scores[arm.position].means(), scores[base.position].means(), (0.0, 1.0))
            found.append(_lift(arm, base, "", (0.0, 1.0), score))
            others = metrics.get(base.position, {})
            for name, values in metrics.get(arm.position, {}).items():
                if name in others:
                    pair = cases.paired(values.means(), others[name].means(), values.scale)
                    found.append(_lift(arm, base, name, values.scale, pair))
    return found


def _lift(arm: Arm, base: Arm, metric: str, scale: tuple[float, float], pair: Paired) -> Lift:
    return Lift(arm=arm.name, baseline=base.name, metric=metric, scale=scale, paired=pair)


class _Cases(NamedTuple):
    """What cases weigh, and which of them belong together."""

    weights: Mapping[int, float]
    clusters: Mapping[int, str]

    def paired(self, one: Values, other: Values, scale: tuple[float, float]) -> Paired:
        """Only cases that both have an answer to; no difference is larger than the scale."""
        cases = sorted(one.keys() & other.keys())
        groups = [self.clusters.get(case, f"\0{case}") for case in cases] if self.clusters else None
        weights = [self.weights[case] for case in cases]
        found = paired([one[case] for case in cases], [other[case] for case in cases], groups, weights)
        if found.ci95 is None:
            return found
        most = scale[1] - scale[0]
        return msgspec.structs.replace(found, ci95=(max(-most, found.ci95[0]), min(most, found.ci95[1])))
