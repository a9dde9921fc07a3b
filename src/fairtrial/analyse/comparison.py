"""The result of a comparison: frozen structs, the same for the terminal, JSON, HTML and web pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

import msgspec

from fairtrial.analyse.caveats import Caveat, RecordingFavours, TellingWeights, UnevenCoverage
from fairtrial.analyse.solving import SolvingBoth
from fairtrial.core.showing import Shown
from fairtrial.stats import Aggregate, AnswersTest, Equivalence, Interaction, Paired, RunMeansTest
from fairtrial.stats.breakpoint import Breakpoint, Stated
from fairtrial.stats.looks import Look
from fairtrial.stats.units import Interval, Measured

ANYTIME = "anytime-valid bets"  # the method whose intervals are valid whenever a run stopped
Verdict = Literal["better", "worse", "equivalent", "cannot tell", "depends on failures"]


def opposite(verdict: Verdict) -> Verdict:
    """Return the verdict on the other arm of a pair."""
    return {"better": "worse", "worse": "better"}.get(verdict, verdict)  # type: ignore[return-value]


def read_verdict(interval: tuple[float, float] | None, sign: int, margin: float | None = None) -> Verdict:
    """Return the verdict for an interval of a − b; all verdicts come from here, read off the interval shown with them.

    `sign` is 1 if higher is better, −1 if lower is.
    """
    if interval is None:
        return "cannot tell"
    low, high = interval
    if low > 0 or high < 0:
        return "better" if (low > 0) == (sign > 0) else "worse"
    return "equivalent" if margin is not None and -margin < low and high < margin else "cannot tell"


class Robustness(msgspec.Struct, frozen=True, kw_only=True):
    """Another test of the same difference."""

    method: str
    p_value: float | None = None
    ci95: Interval | None = None


class PairedT(msgspec.Struct, frozen=True, kw_only=True):
    """Student's paired t over the cases, as textbooks have it: no scale, clusters, wordings or other pairs in it."""

    difference: float
    ci95: Interval
    t_statistic: float
    freedom: int
    p_value: float


class OnThisCase(msgspec.Struct, frozen=True, kw_only=True):
    """What holds on the only case of a pair, where the answers are the sample. Adjusted for all pairs (Bonferroni)."""

    verdict: Verdict
    p_adjusted: float
    test: AnswersTest


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """The difference with every failed trial counted against one of the two arms, at the pair's level."""

    difference: Measured | None
    ci95: Interval | None
    verdict: Verdict
    count: int


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """The two extremes of the difference, whatever scores the failed trials would have got."""

    against_a: Bound  # failed trials of a get the worst score, those of b the best
    against_b: Bound

    def turned(self) -> Failures:
        """Return the same for b − a."""
        return Failures(against_a=_turned(self.against_b), against_b=_turned(self.against_a))


class KindDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The difference on the cases of one kind; interval and p are adjusted for the kinds of the same attribute."""

    by: str
    value: str
    verdict: Verdict
    difference: Measured | None
    ci95: Interval | None
    p_value: float | None
    count: int
    paired_t: PairedT | None = None


class Differs(msgspec.Struct, frozen=True, kw_only=True):
    """A test of whether the difference varies between kinds of cases; p is adjusted for the number of tags."""

    by: str
    value: str  # a tag, tested against the cases without it; empty where all kinds are compared at once
    p_value: float
    test: Interaction


Means = Literal["cases", "repeats", "judgements", "labels", "second_judge"]


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way to the next point of certainty."""

    what: Means
    more: int  # cases, answers to each case, verdicts on each answer, or cases that are labelled or judged again
    calls: int  # that this takes, of both arms and their judges
    usd: float | None  # None where prices are unknown; of labels, as people's time has no price here


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict on two arms cost, and what the next point of certainty would."""

    calls: int  # of both arms and their judges
    usd: float | None  # None where the cost of a call is unknown
    half_width: Measured | None = None  # of the interval
    target: Measured | None = None
    ways: list[Way] = []  # that lead there, the cheapest first
    unknown: list[Means] = []  # what might lead there as well, but has left no trace in this run yet


class Comparison(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """Two arms on the cases that both have a score for; differences are a − b. `better` means that a is better."""

    a: str
    b: str
    metric: str  # empty for the score
    scale: tuple[Measured | None, Measured | None]  # worst and best
    verdict: Verdict
    difference: Measured | None
    ci95: Interval | None  # 95 % for all pairs together: the verdict is read off it
    level: float  # of `ci95` for this pair alone: 0.95 with one pair, more with several
    p_value: float | None
    p_adjusted: float | None  # below 5 % where `ci95` excludes 0
    comparisons: int  # how many pairs interval and p are adjusted for
    primary: bool  # whether this is the metric that was asked about, not one of the others
    std_err: Measured | None
    std_dev: Measured | None  # of the differences
    method: str
    rough: bool  # few cases account for the difference, and no scale bounds what others could show
    mean_a: Measured | None
    mean_b: Measured | None
    count: int
    units: int
    ahead: int  # cases on which a is better
    tied: int
    only_one: int  # cases that only one of the two has a score for
    effect_size: float | None  # d_z: the mean divided by the standard deviation of the differences
    superiority: float | None
    detectable: Measured | None  # in 4 of 5 runs like this one
    detectable_rough: bool = False  # few cases account for the spread: others may show more, and then it is larger
    price: Price | None = None  # what the verdict cost, and what a point more would; of the pair to decide next only
    look: Look | None = None  # of a plan with looks: level and p-values allow for all of them
    stated: Stated | None = None  # the largest difference of a case, where a suite or a command states one
    breakpoint: Breakpoint | None = None  # where nobody can tell, but could if no case lost more than this
    lower_is_better: bool = False
    equivalence: Equivalence | None = None
    failures: Failures | None = None  # None where nothing failed, or no scale bounds a failed trial's score
    variance_saved: float | None = None  # share of the variance removed by an earlier run on more cases, or other arms
    others: int = 0  # arms that have answered more cases, whose scores did that
    wordings: int = 0  # of both conditions, where they are a sample like the cases
    labels: int = 0  # labelled cases that correct the judges' difference
    labelled_by: Literal["people", "second_judge"] | None = None
    as_judged: Paired | None = None  # the difference without that correction
    robustness: list[Robustness] = []
    paired_t: PairedT | None = None  # next to the verdict, whichever way that was reached
    on_this_case: OnThisCase | None = None  # where there is one case, with several answers of both
    groups: list[KindDifference] = []
    differs: list[Differs] = []
    run_means: RunMeansTest | None = None
    solving: SolvingBoth | None = None  # what a solved trial costs both, where both are agents and solve some

    @property
    def behind(self) -> int:
        """Return the number of cases on which b is better."""
        return self.count - self.ahead - self.tied

    def of(self, arm: str) -> Comparison:
        """Return the same comparison with this arm first."""
        return self if self.a == arm else self.turned()

    def turned(self) -> Comparison:
        """Return the same comparison with the arms the other way round: b − a."""
        judged, runs = self.as_judged, self.run_means
        return msgspec.structs.replace(
            _turned(self),
            a=self.b,
            b=self.a,
            mean_a=self.mean_b,
            mean_b=self.mean_a,
            ahead=self.behind,
            effect_size=_negative(self.effect_size),
            superiority=None if self.superiority is None else 1 - self.superiority,
            failures=self.failures and self.failures.turned(),
            as_judged=judged
            and msgspec.structs.replace(judged, difference=_negative(judged.difference), ci95=_mirrored(judged.ci95)),
            robustness=[msgspec.structs.replace(line, ci95=_mirrored(line.ci95)) for line in self.robustness],
            on_this_case=self.on_this_case and _other_way_round(self.on_this_case),
            groups=[_turned(group) for group in self.groups],
            solving=self.solving and self.solving.turned(),
            run_means=runs
            and msgspec.structs.replace(
                runs,
                mean_a=runs.mean_b,
                mean_b=runs.mean_a,
                score_diff=-runs.score_diff,
                t_statistic=-runs.t_statistic,
                effect_size=-runs.effect_size,
            ),
        )


Turnable = TypeVar("Turnable", Bound, KindDifference, Comparison)


def _turned(part: Turnable) -> Turnable:
    """Return a difference the other way round, with the verdict on the other arm."""
    return msgspec.structs.replace(
        part,
        verdict=opposite(part.verdict),
        difference=_negative(part.difference),
        ci95=_mirrored(part.ci95),
        **({} if isinstance(part, Bound) else {"paired_t": part.paired_t and _turned_t(part.paired_t)}),
    )


def _turned_t(test: PairedT) -> PairedT:
    low, high = test.ci95
    difference, t = 0.0 - test.difference, 0.0 - test.t_statistic
    return msgspec.structs.replace(test, difference=difference, t_statistic=t, ci95=(0.0 - high, 0.0 - low))


def _other_way_round(found: OnThisCase) -> OnThisCase:
    test = found.test
    turned = msgspec.structs.replace(
        test,
        mean_a=test.mean_b,
        mean_b=test.mean_a,
        std_dev_a=test.std_dev_b,
        std_dev_b=test.std_dev_a,
        count_a=test.count_b,
        count_b=test.count_a,
        difference=0.0 - test.difference,
        ci95=_mirrored(test.ci95),
    )
    return msgspec.structs.replace(found, verdict=opposite(found.verdict), test=turned)


def _negative(value: float | None) -> float | None:
    return None if value is None else 0.0 - value  # 0 stays 0


def _mirrored(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if bounds is None else (0.0 - bounds[1], 0.0 - bounds[0])


class ComparedArm(msgspec.Struct, frozen=True, kw_only=True):
    """One arm by itself."""

    label: str
    arm: str
    source: str
    aggregate: Aggregate
    coverage: float
    failed: int
    left: int | None = None  # the look at which it left a race


class Silent(msgspec.Struct, frozen=True, kw_only=True):
    """An arm without a score: how many of its trials are over, and why those that failed did, most frequent first."""

    label: str
    ended: int = 0
    failures: dict[str, int] = {}  # kinds of failures


class SourceName(msgspec.Struct, frozen=True, kw_only=True):
    """The display name of a run or a series: `run 3`; and when it began."""

    label: str  # as in the labels of arms
    name: str
    began: float


class Comparisons(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """All compared pairs; p-values are adjusted over `pairs`."""

    sources: list[str]
    run_ids: list[str]
    standings: list[ComparedArm]
    pairs: list[Comparison]
    metrics: list[Comparison]
    metric: str
    margin: Measured | None
    caveats: list[Caveat] = msgspec.field(name="notes")
    names: list[SourceName] = []  # of the sources, in their order
    silent: list[Silent] = []  # compared arms without a score
    uncompared: list[ComparedArm] = []  # arms that are in no pair, because no other source has them

    @property
    def notes(self) -> list[str]:
        """What to read before trusting them."""
        return list(map(str, self.caveats))

    def turned(self) -> Comparisons:
        """Return the same comparisons with the arms of every pair the other way round."""
        return msgspec.structs.replace(
            self, pairs=[pair.turned() for pair in self.pairs], metrics=[pair.turned() for pair in self.metrics]
        )

    def renamed(self, names: Mapping[str, str]) -> Comparisons:
        """Return the same comparisons with other names of the arms, for display."""
        replace = msgspec.structs.replace

        def pair(one: Comparison) -> Comparison:
            return replace(one, a=names.get(one.a, one.a), b=names.get(one.b, one.b))

        def standing(one: ComparedArm) -> ComparedArm:
            return replace(one, label=names.get(one.label, one.label))

        return replace(
            self,
            standings=list(map(standing, self.standings)),
            pairs=list(map(pair, self.pairs)),
            metrics=list(map(pair, self.metrics)),
            caveats=[_renamed(caveat, names) for caveat in self.caveats],
            silent=[replace(one, label=names.get(one.label, one.label)) for one in self.silent],
            uncompared=list(map(standing, self.uncompared)),
        )


def _renamed(caveat: Caveat, names: Mapping[str, str]) -> Caveat:
    if not isinstance(caveat, UnevenCoverage | TellingWeights | RecordingFavours):
        return caveat
    one, other = (names.get(arm, arm) for arm in caveat.arms)
    return msgspec.structs.replace(caveat, arms=(one, other))
