"""Shares over cases, as reports on tools and skills have them, and by how much two arms differ in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from fairtrial.analyse.case_share import CaseShare
from fairtrial.analyse.comparison import Comparison, Verdict
from fairtrial.analyse.family import interval_levels
from fairtrial.core.score import Scale
from fairtrial.stats import Mean, mean_difference
from fairtrial.stats.units import Interval, Measured

RateKind = Literal[
    "use", "success", "valid", "chosen", "arguments", "forbidden", "mistaken", "unneeded", "recall", "false_fires"
]


class OfferRate(msgspec.Struct, frozen=True, kw_only=True):
    """A share: how many of how many, with an interval over cases; without any there is no share."""

    hits: int
    of: int
    share: Measured | None
    ci95: Interval | None


class OfferDifference(msgspec.Struct, frozen=True, kw_only=True):
    """By how much an arm differs from its baseline, on the cases that both have."""

    metric: str  # empty for the score
    scale: Scale
    difference: Measured | None
    ci95: Interval | None
    verdict: Verdict
    count: int


class RateChange(msgspec.Struct, frozen=True, kw_only=True):
    """A share of one arm and of another one, with the paired difference over the cases that both have."""

    kind: RateKind
    name: str  # of the tool or the skill; of a mistake, of the tool that the case asks for
    called: str = ""  # of a mistake: the tool that was called instead
    before: OfferRate
    after: OfferRate
    difference: Measured | None
    ci95: Interval | None  # holds for all such differences of the run together
    count: int

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.ci95 is not None and not self.ci95[0] <= 0 <= self.ci95[1]


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """A share of two arms, to be compared."""

    kind: RateKind
    name: str
    called: str = ""
    before: CaseShare
    after: CaseShare


def rate_of(share: CaseShare) -> OfferRate:
    """Return a share with its interval."""
    result = share.aggregate() if share.chances else None
    return OfferRate(
        hits=share.hits,
        of=share.chances,
        share=result.mean if result else None,
        ci95=result.ci95 if result else None,
    )


def difference_of(pair: Comparison, arm: str) -> OfferDifference:
    """Return a comparison as that of this arm with the other one."""
    own = pair.of(arm)
    return OfferDifference(
        metric=own.metric,
        scale=own.scale,
        difference=own.difference,
        ci95=own.ci95,
        verdict=own.verdict,
        count=own.count,
    )


def changes_of(groups: Sequence[Sequence[Shares]]) -> list[list[RateChange]]:
    """Return the differences of all groups, as one family: their intervals hold for all of them together."""
    means = [[_paired(shares) for shares in group] for group in groups]
    levels = iter(interval_levels([mean for group in means for mean in group], None))
    return [
        [_change(shares, mean, next(levels)) for shares, mean in zip(group, own, strict=True)]
        for group, own in zip(groups, means, strict=True)
    ]


def _paired(shares: Shares) -> Mean:
    cases = sorted(shares.before.cases & shares.after.cases)
    return mean_difference(
        shares.after.values(cases), shares.before.values(cases), shares.before.clusters(cases), scale=(0.0, 1.0)
    )


def _change(shares: Shares, mean: Mean, level: float) -> RateChange:
    return RateChange(
        kind=shares.kind,
        name=shares.name,
        called=shares.called,
        before=rate_of(shares.before),
        after=rate_of(shares.after),
        difference=mean.mean,
        ci95=mean.interval(level),
        count=mean.count,
    )


def telling(changes: Iterable[RateChange], most: int) -> list[RateChange]:
    """Return the differences that say most: those beyond chance first, then the largest; none without any."""
    moved = [one for one in changes if one.difference]
    ordered = sorted(moved, key=lambda one: (not one.differs, -abs(one.difference or 0.0), one.name, one.kind))
    return ordered[:most]
