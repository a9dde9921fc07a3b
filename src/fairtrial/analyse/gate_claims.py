"""Categories with margins of their own and guard metrics: claims that a gate decides together with the mean.

Every check must pass, so each passes by its own 95 % interval: a run that is worse somewhere passes with 2.5 % at most
(intersection–union). Any check can block, so blocking is adjusted over all of them by Holm's procedure: a run that is
nowhere worse is blocked with 2.5 % at most. The lower limit of a shown interval is for passing, the upper for blocking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from fairtrial.analyse.case_table import Floats, Ints
from fairtrial.analyse.common import Common, common_cases
from fairtrial.analyse.evidence import Evidence
from fairtrial.analyse.gate_cases import column_of
from fairtrial.analyse.gate_reasons import ClaimReason, PlainReason
from fairtrial.analyse.gate_result import GateCheck, Result
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable, check_metric
from fairtrial.core.errors import FairtrialError
from fairtrial.core.gate import RATES, REFUSALS, GateSpec
from fairtrial.stats import CrossedMean, holm_levels
from fairtrial.stats.mean import ALPHA, Mean
from fairtrial.store.outcomes import guarded_sums

Pair = tuple[ArmScores, ArmScores]  # after, before


class Claim(NamedTuple):
    """One difference with its margin, before it is decided. Gains are positive, whatever is measured."""

    name: str
    arm: str
    gain: Mean | CrossedMean | None
    margin: float
    guard: Literal["", "loss", "rise"] = ""  # what of it is limited; empty for a category
    percent: bool = False  # it is a share of the baseline
    worst: Mean | CrossedMean | None = None  # the gain with every failed trial counted against the arm
    metric: str = ""
    why: PlainReason = PlainReason(what="nothing_common_there")  # there is no gain
    sign: int = 1  # −1 if the number itself is shown with the other sign: a rising cost is a loss

    @property
    def p_loss(self) -> float:
        """The p-value of a loss; 1 if there is none."""
        if self.gain is None or self.gain.mean is None or self.gain.mean >= 0:
            return 1.0
        p = self.gain.p_value()
        return 1.0 if p is None else p


def claims(scores: ScoreTable, pairs: Sequence[Pair], spec: GateSpec) -> Iterator[Claim]:
    """Yield every category and guard of every arm."""
    for after, before in pairs:
        found = [_category(scores, after, before, name, margin / 100) for name, margin in spec.categories.items()]
        found += [_guard(scores, after, before, name, limit) for name, limit in spec.guards.items()]
        if after.stop is None and before.stop is None:
            yield from found
        else:
            yield from (claim._replace(gain=None, worst=None, why=PlainReason(what="stopped_early")) for claim in found)


def decide(found: Sequence[Claim], others: Sequence[float], alpha: float = ALPHA) -> Iterator[GateCheck]:
    """Decide the claims; `others` are the p-values of losses of the other checks of the gate."""
    levels = holm_levels([*(claim.p_loss for claim in found), *others], alpha)
    for claim, level in zip(found, levels, strict=False):
        yield _decided(claim, level, alpha)


def block_levels(found: Sequence[Claim], others: Sequence[float], alpha: float = ALPHA) -> list[float]:
    """Return the levels at which the other checks may block."""
    return holm_levels([*(claim.p_loss for claim in found), *others], alpha)[len(found) :]


def _decided(claim: Claim, level: float, alpha: float) -> GateCheck:
    check = partial(GateCheck, name=claim.name, arm=claim.arm, metric=claim.metric)
    gain = claim.gain
    if gain is None or gain.mean is None:
        return check(result="cannot tell", reason=claim.why)
    value, limit = claim.sign * gain.mean, -claim.sign * claim.margin
    reason = ClaimReason(
        value=value,
        bounds=None,
        cases=gain.count,
        limit=claim.margin,
        metric=claim.metric,
        percent=claim.percent,
        guard=claim.guard,
        level=alpha,
    )
    if _alike(gain):
        result: Result = "passed" if gain.mean > -claim.margin else "failed"
        return check(result=result, reason=replace(reason, alike=True), value=value, limit=limit)
    passing, blocking = gain.interval(alpha), gain.interval(level)
    if passing is None or blocking is None:
        return check(result="cannot tell", reason=reason)
    low, high = passing[0], blocking[1]
    result = "passed" if low > -claim.margin else "failed" if high < 0 else "cannot tell"
    doubtful = result == "passed" and claim.worst is not None and not _kept(claim.worst, claim.margin, alpha)
    bounds = (low, high) if claim.sign > 0 else (-high, -low)
    return check(
        result="cannot tell" if doubtful else result,
        reason=replace(reason, bounds=bounds, with_failures=doubtful),
        value=value,
        interval=bounds,
        limit=limit,
    )


def _alike(gain: Mean | CrossedMean) -> bool:
    """Return whether cases and wordings all differ by the same on a scale without limits: no interval, and no doubt."""
    if isinstance(gain, CrossedMean):
        return not gain.between.variance and _alike(gain.over_cases)
    return gain.method == "nothing varies"


def _kept(worst: Mean | CrossedMean, margin: float, alpha: float) -> bool:
    interval = worst.interval(alpha)
    return interval is not None and interval[0] > -margin


def _category(scores: ScoreTable, after: ArmScores, before: ArmScores, name: str, margin: float) -> Claim:
    inside = np.asarray([scores.facts[row].category == name for row in range(len(scores.facts))])
    if not np.any(inside):
        known = dict.fromkeys(str(scores.facts[row].category) for row in range(len(scores.facts)))
        raise FairtrialError(f"gate: categories: no case has the category `{name}`; they have: {', '.join(known)}")
    evidence = Evidence(scores, after, before, SCORE, one_sided=True)
    failed = bool(after.failed[inside].sum() or before.failed[inside].sum())
    return Claim(
        name=f"category {name}",
        arm=after.arm.name,
        gain=_any(evidence.estimate_on(inside[evidence.common.keys])),
        margin=margin,
        worst=evidence.worst_on(inside) if failed else None,
    )


def _guard(scores: ScoreTable, after: ArmScores, before: ArmScores, name: str, limit: float) -> Claim:
    if name in RATES:
        return _rate(scores, after, before, name, limit / 100)
    if name == REFUSALS:
        common = _common(scores, *(_guarded(entry, name) for entry in (after, before)))
        gain = Mean(-common.d, common.weights, common.clusters, bounds=(-1.0, 1.0), span=1.0, one_sided=True)
        return _percentage(after, name, _any(gain), limit / 100)
    check_metric([after], name)
    check_metric([before], name)
    sign = after.sign(name)
    better, worse = (after, before) if sign > 0 else (before, after)
    evidence = Evidence(scores, better, worse, name, one_sided=True)
    estimate = evidence.estimate_on(np.ones(len(evidence.common.keys), dtype=np.bool_))
    return Claim(
        name=f"guard {name}",
        arm=after.arm.name,
        gain=_any(estimate),
        margin=limit,
        guard="loss" if sign > 0 else "rise",
        metric=name,
        sign=sign,
    )


def _rate(scores: ScoreTable, after: ArmScores, before: ArmScores, name: str, limit: float) -> Claim:
    """Return how much cheaper or faster it got, as a share of the baseline.

    It is a ratio of means; its error is that of the residuals around it (linearised), case by case.
    """
    common = _common(scores, *(_guarded(entry, name) for entry in (after, before)))
    gain = None
    if len(common.keys):
        base = float(np.average(common.b, weights=common.weights))
        if base > 0:
            share = float(np.average(common.a, weights=common.weights)) / base
            gain = Mean((share * common.b - common.a) / base + 1 - share, common.weights, common.clusters)
        elif not np.any(common.a):
            gain = Mean(np.zeros(len(common.keys)), common.weights, common.clusters)  # free before and after
    return _percentage(after, name, gain, limit)


def _percentage(after: ArmScores, name: str, gain: Mean | CrossedMean | None, limit: float) -> Claim:
    """Return the claim of a guard whose rise is a loss, in percent."""
    return Claim(
        name=f"guard {name}",
        arm=after.arm.name,
        gain=gain,
        margin=limit,
        guard="rise",
        percent=True,
        sign=-1,
    )


def _guarded(entry: ArmScores, name: str) -> Floats:
    return column_of(entry, lambda run: guarded_sums(run.store, run.id, name)).means()


def _common(scores: ScoreTable, a: Floats, b: Floats) -> Common:
    clusters: Ints | None = scores.clusters
    return common_cases(a, b, scores.weights, clusters)


def _any(gain: Mean | CrossedMean) -> Mean | CrossedMean | None:
    return gain if gain.count else None
