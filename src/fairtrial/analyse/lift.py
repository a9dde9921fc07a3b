"""Lift of a condition: the difference to the baseline on the same cases, for the score and every metric."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairtrial.analyse.compare import decided, other_metrics
from fairtrial.analyse.comparison import Comparison
from fairtrial.analyse.score_table import choose, read_scores, sources_of
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Arm
from fairtrial.core.score import Scale
from fairtrial.stats import Paired
from fairtrial.store import Store
from fairtrial.store.records import RunRecord


class Lift(msgspec.Struct, frozen=True, kw_only=True):
    """One arm against its target's baseline arm; `metric` is empty for the score (0–1), else it is on its own scale.

    Interval and p are those of `compare` for the whole run: they hold for all its pairs together.
    """

    arm: str
    baseline: str
    metric: str
    scale: Scale
    paired: Paired


def lifts(store: Store, record: RunRecord, arms: Sequence[Arm], baseline: str | None = None) -> list[Lift]:
    """Return the lift of every condition over the baseline (by default the first condition), for each target."""
    names = list(dict.fromkeys(arm.condition.name for arm in arms))
    if baseline is not None and baseline not in names:
        raise FairtrialError(f"this run has no condition `{baseline}`; its conditions: {', '.join(names)}")
    if len(names) < 2:
        return []
    wanted: list[tuple[str, str]] = []
    for target in dict.fromkeys(arm.target.id for arm in arms):
        own = [arm for arm in arms if arm.target.id == target]
        base = next((arm for arm in own if arm.condition.name == baseline), own[0])
        wanted += [(arm.name, base.name) for arm in own if arm is not base]
    found: dict[frozenset[str], list[Comparison]] = {}
    for pair in _compared(store, record, {frozenset(pair) for pair in wanted}):
        found.setdefault(frozenset((pair.a, pair.b)), []).append(pair)
    return [
        _lift(pair.of(arm), arm, base)
        for arm, base in wanted
        for pair in found.get(frozenset((arm, base)), ())
        if pair.count
    ]


def _compared(store: Store, record: RunRecord, wanted: set[frozenset[str]]) -> list[Comparison]:
    """Compare pairs of arms by the primary metric and by every other one, in the same families as `compare`."""
    scores = read_scores(sources_of(StoredRun(store, record)))
    family = choose(scores)
    pairs = [(a, b) for a, b in family if frozenset((a.label, b.label)) in wanted]
    others = other_metrics(family, scores.primary)
    first = decided(scores, pairs, [scores.primary], detailed=0, family=family)
    return first + decided(scores, pairs, others, primary=False, family=family)


def _lift(pair: Comparison, arm: str, base: str) -> Lift:
    paired = Paired(
        difference=pair.difference,
        ci95=pair.ci95,
        p_value=pair.p_adjusted,
        std_err=pair.std_err,
        std_dev=pair.std_dev,
        count=pair.count,
        method=pair.method,
        units=pair.units,
    )
    return Lift(arm=arm, baseline=base, metric=pair.metric, scale=pair.scale, paired=paired)
