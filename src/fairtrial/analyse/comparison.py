"""What a comparison says: frozen, the same for terminal, JSON, HTML and pages."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairtrial.core.score import Scale
from fairtrial.stats import Aggregate, Equivalence, Interaction, Paired, RunMeansTest

Verdict = Literal["better", "worse", "equivalent", "cannot tell"]


class Robustness(msgspec.Struct, frozen=True, kw_only=True):
    """The same question, asked in another way."""

    method: str
    p_value: float | None = None
    ci95: tuple[float, float] | None = None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The difference among the cases of one kind; p is adjusted for the kinds of the same attribute."""

    by: str
    value: str
    verdict: Verdict
    difference: float | None
    ci95: tuple[float, float] | None
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
    scale: Scale  # worst and best
    verdict: Verdict
    difference: float | None
    ci95: tuple[float, float] | None  # of this pair alone: not adjusted
    p_value: float | None
    p_adjusted: float | None
    comparisons: int  # how many pairs p is adjusted for
    std_err: float | None
    method: str
    mean_a: float | None
    mean_b: float | None
    count: int
    units: int
    ahead: int  # cases on which a is better
    tied: int
    only_one: int  # cases that only one of the two has a score for
    effect_size: float | None
    effect: str | None
    superiority: float | None
    detectable: float | None  # with a power of 80 %
    equivalence: Equivalence | None = None
    failures_as_worst: Paired | None = None  # with failed trials counted as the worst score
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
    margin: float | None
    notes: list[str]
