"""What a comparison says: frozen, the same for terminal, JSON, HTML and pages."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairtrial.stats import Aggregate, Equivalence, Interaction, Paired, RunMeansTest
from fairtrial.stats.units import Interval, Measured

ANYTIME = "anytime-valid bets"  # the method whose intervals hold whenever a run stopped
Verdict = Literal["better", "worse", "equivalent", "cannot tell", "depends on failures"]


def read_verdict(interval: tuple[float, float] | None, sign: int, margin: float | None = None) -> Verdict:
    """The one place where a verdict is made: it is read off the interval of a − b that is shown with it.

    `sign` is 1 where more is better, −1 where less is.
    """
    if interval is None:
        return "cannot tell"
    low, high = interval
    if low > 0 or high < 0:
        return "better" if (low > 0) == (sign > 0) else "worse"
    return "equivalent" if margin is not None and -margin < low and high < margin else "cannot tell"


class Robustness(msgspec.Struct, frozen=True, kw_only=True):
    """The same question, asked in another way."""

    method: str
    p_value: float | None = None
    ci95: Interval | None = None


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """The difference with every failure counted against one of the two, at the level of the pair."""

    difference: Measured | None
    ci95: Interval | None
    verdict: Verdict
    count: int


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """Between what the difference lies, whatever the failed trials would have been worth."""

    against_a: Bound  # those of a are the worst, those of b the best
    against_b: Bound


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The difference among the cases of one kind; interval and p are adjusted for the kinds of the same attribute."""

    by: str
    value: str
    verdict: Verdict
    difference: Measured | None
    ci95: Interval | None
    p_value: float | None
    count: int


class Differs(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the difference itself differs between kinds of cases; p is adjusted for the number of tags."""

    by: str
    value: str  # a tag, held against the cases without it; empty where all kinds are held against each other
    p_value: float
    test: Interaction


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms on the cases that both have a score for; differences are a − b. `better` means that a is."""

    a: str
    b: str
    metric: str  # empty for the score
    scale: tuple[Measured | None, Measured | None]  # worst and best
    verdict: Verdict
    difference: Measured | None
    ci95: Interval | None  # 95 % for all pairs together: the verdict is read off it
    level: float  # what that is for this pair alone: 0.95 where there is one, more where there are several
    p_value: float | None
    p_adjusted: float | None  # below 5 % where `ci95` leaves out 0
    comparisons: int  # how many pairs interval and p are adjusted for
    primary: bool  # whether the verdict is about what was asked, and not about one of the other metrics
    std_err: Measured | None
    std_dev: Measured | None  # of the differences
    method: str
    rough: bool  # few cases carry the difference, and no scale says what others could show
    mean_a: Measured | None
    mean_b: Measured | None
    count: int
    units: int
    ahead: int  # cases on which a is better
    tied: int
    only_one: int  # cases that only one of the two has a score for
    effect_size: float | None  # d_z: the mean over the deviation of the differences
    superiority: float | None
    detectable: Measured | None  # with a power of 80 %
    equivalence: Equivalence | None = None
    failures: Failures | None = None  # None where nothing failed, or no scale says what a failure could be worth
    variance_saved: float | None = None  # by an earlier run on more cases
    labels: int = 0  # labelled cases that correct the judges' difference
    as_judged: Paired | None = None  # the difference without that correction
    robustness: list[Robustness] = []
    groups: list[Group] = []
    differs: list[Differs] = []
    run_means: RunMeansTest | None = None

    @property
    def behind(self) -> int:
        """Cases on which b is better."""
        return self.count - self.ahead - self.tied


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One contestant by itself."""

    label: str
    arm: str
    source: str
    aggregate: Aggregate
    coverage: float
    failed: int


class Comparisons(msgspec.Struct, frozen=True, kw_only=True):
    """All that was compared; p-values are adjusted over `pairs`."""

    sources: list[str]
    run_ids: list[str]
    standings: list[Standing]
    pairs: list[Comparison]
    metrics: list[Comparison]
    metric: str
    margin: Measured | None
    notes: list[str]
