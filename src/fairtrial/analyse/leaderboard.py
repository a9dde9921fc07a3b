"""Who leads: every arm strictly by its mean, with what the verdicts of `compare` on all pairs leave open.

The order comes from the means; everything else comes from the verdicts: which ranks an arm may have, who is still in
the race for first, and which arms these cases cannot separate. That relation is not transitive, so arms are not divided
into groups but joined by brackets, which may overlap. Of very many arms, each is compared with the first one only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import msgspec

from fairtrial.analyse.arm_scores import ArmScores
from fairtrial.analyse.compare import decided, silent_arms, with_first
from fairtrial.analyse.comparison import Comparison, Comparisons, Price, Silent, Verdict, opposite
from fairtrial.analyse.planning import cases_to_see
from fairtrial.analyse.price import Prices
from fairtrial.analyse.score_table import ScoreTable, read_scores, sources_of
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.analyse.summary import by_mean
from fairtrial.core.many_arms import is_large
from fairtrial.stats import Aggregate
from fairtrial.stats.breakpoint import Breakpoint, Stated
from fairtrial.stats.planning import detectable
from fairtrial.stats.units import Interval, Measured

_DELTAS = (0.2, 0.1, 0.05, 0.03, 0.02, 0.01)
_MOST_BRACKETED = 60  # arms: with more, nobody can follow brackets, and there may be very many
_MOST_BRACKETS = 12  # in a picture


class Distance(msgspec.Struct, frozen=True, kw_only=True):
    """The paired difference of one arm to another: negative if its values are lower. The verdict is on the arm."""

    verdict: Verdict
    difference: Measured | None
    ci95: Interval | None
    count: int  # cases that both have
    here: Distance | None = None  # on the only case, where the answers are the sample

    @property
    def separates(self) -> bool:
        """Return whether one of the two arms is better."""
        return self.verdict in ("better", "worse")


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """One arm, the best and the worst rank that the verdicts allow, and its distance to the first arm."""

    label: str
    aggregate: Aggregate
    rank: int
    worst_rank: int
    to_first: Distance | None  # None for the first itself
    left: int | None = None  # the look at which it left a race that went on


class Detectable(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest gap between the first arm and another one that these cases would show in 4 of 5 runs."""

    other: str
    gap: Measured
    count: int  # cases that both have
    rough: bool  # few cases account for the differences: others may show more, and then it is larger


class Unless(msgspec.Struct, frozen=True, kw_only=True):
    """A pair of the first arm that nobody can tell apart, but could if no case lost more than the breakpoint."""

    ahead: str
    other: str
    breakpoint: Breakpoint


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """Every arm that has a score, the best mean first; and every pair that is compared, the better placed arm first."""

    metric: str  # empty for the score
    sign: int  # 1 if higher is better, −1 if lower is
    margin: Measured | None
    places: list[Contender]
    distances: dict[str, dict[str, Distance]]  # distances[a][b] is a's distance to b, where a is placed above b
    silent: list[Silent]  # arms without a score
    cases: int  # of the first arm
    failed: int  # trials that failed, of all arms
    detectable: list[Detectable]  # where nobody can tell the first from another
    stated: Stated | None  # the largest difference of a case: the one contradicted most, where pairs contradict it
    unless: list[Unless]  # where that would tell them apart, the nearest first
    to_settle: tuple[str, Measured, int] | None  # another arm, a gap to the first, and the cases that would show it
    priced: tuple[str, str, Price] | None = None  # the pair to decide next, the first arm first, and its price

    @property
    def leading(self) -> list[Contender]:
        """Return the arms that may be first: no arm is better than they are. No two of them can be separated."""
        return [one for one in self.places if one.rank == 1]

    @property
    def front(self) -> set[str]:
        """Return the arms that a picture sets off: those that may be first, unless every arm may."""
        return {one.label for one in self.leading} if len(self.leading) < len(self.places) else set()

    @property
    def every_pair(self) -> bool:
        """Return whether every two arms are compared, not only each with the first one."""
        return sum(map(len, self.distances.values())) == math.comb(len(self.places), 2)

    @property
    def unscored(self) -> list[str]:
        """Return the arms without a score."""
        return [one.label for one in self.silent]

    @property
    def order(self) -> list[str]:
        """Return every arm, the best mean first, those without a score last."""
        return [*(one.label for one in self.places), *self.unscored]

    def distance(self, one: str, other: str) -> Distance:
        """Return the distance of an arm to another one that it is compared with."""
        found = self.distances.get(one, {}).get(other)
        return _turned(self.distances[other][one]) if found is None else found

    @property
    def breaks(self) -> list[int]:
        """Return the places after which every arm is worse than every arm before."""
        labels = [one.label for one in self.places]
        return [
            place
            for place in range(1, len(labels) if self.every_pair else min(2, len(labels)))
            if all(self.distances[a][b].verdict == "better" for a in labels[:place] for b in labels[place:])
        ]

    @property
    def brackets(self) -> list[list[str]]:
        """Return the largest groups of arms of which no two can be separated; none where there are too many arms."""
        labels = [one.label for one in self.places]
        if len(labels) > _MOST_BRACKETED or not self.every_pair:
            return []
        return brackets(labels, lambda a, b: self.distances[a][b].separates)

    @property
    def shown_brackets(self) -> list[list[str]]:
        """Return the brackets that a picture shows: none where they would say nothing, or too much to be followed."""
        found = self.brackets if len(self.places) > 2 else []
        return [] if len(found) > _MOST_BRACKETS or (found and len(found[0]) == len(self.places)) else found


def brackets(labels: Sequence[str], separated: Callable[[str, str], bool]) -> list[list[str]]:
    """Return every largest group of labels of which no two are separated, in the order of their first members.

    Two labels share a bracket if and only if they are not separated. (Insert and absorb, as for compact letter
    displays.) A label that is separated from all others is in none.
    """
    groups = [(1 << len(labels)) - 1]  # members as bits
    for one, other in combinations(range(len(labels)), 2):
        if not separated(labels[one], labels[other]):
            continue
        both = 1 << one | 1 << other
        split = [part for group in groups if group & both == both for part in (group ^ 1 << one, group ^ 1 << other)]
        groups = [group for group in groups if group & both != both]
        for part in split:
            if not any(part & group == part for group in groups):
                groups = [group for group in groups if group & part != group] + [part]
    members = [[place for place in range(len(labels)) if group >> place & 1] for group in groups]
    return [[labels[place] for place in group] for group in sorted(members) if len(group) > 1]


def run_leaderboard(run: StoredRun, prices: Prices | None = None) -> Leaderboard:
    """Rank the arms of a run by its primary metric, with the margin it was allowed to stop by."""
    return table_leaderboard(read_scores(sources_of(run)), prices=prices)


def table_leaderboard(scores: ScoreTable, metric: str | None = None, *, prices: Prices | None = None) -> Leaderboard:
    """Rank the arms of one or more runs, by their primary metric unless another one is named.

    With `prices`, it says what the verdict on the pair to decide next cost.
    """
    metric = scores.primary if metric is None else metric
    arms = [arm for arm in scores.arms if arm.values.get(metric)]
    margin = None if metric else next((arm.stop.margin for arm in scores.arms if arm.stop is not None), None)
    everything = list(combinations(arms, 2))
    pairs = with_first(scores, everything, metric)
    decisions = decided(scores, pairs, [metric], margin=margin, detailed=0, family=everything, prices=prices)
    return _leaderboard(
        {arm.label: scores.aggregate(arm, metric) for arm in arms},
        decisions,
        left={arm.label: arm.left for arm in arms if arm.left is not None},
        metric=metric,
        sign=_sign(arms, metric),
        margin=margin,
        silent=silent_arms(scores.arms, metric),
        failed=sum(arm.failures for arm in scores.arms),
    )


def _sign(arms: Sequence[ArmScores], metric: str) -> int:
    return arms[0].sign(metric) if arms else 1


def comparison_leaderboard(comparisons: Comparisons) -> Leaderboard | None:
    """Rank the arms of a comparison; None unless it has every pair of them, or of very many those with the first."""
    means = {one.label: one.aggregate for one in comparisons.standings}
    scored = {label: one for label, one in means.items() if one.mean is not None}
    every = math.comb(len(means), 2)
    if len(comparisons.pairs) != every and not (is_large(math.comb(len(scored), 2)) and _has_hub(comparisons, means)):
        return None
    return _leaderboard(
        scored,
        [pair for pair in comparisons.pairs if pair.a in scored and pair.b in scored],
        left={one.label: one.left for one in comparisons.standings if one.left is not None},
        metric=comparisons.metric,
        sign=-1 if comparisons.pairs[0].lower_is_better else 1,
        margin=comparisons.margin,
        silent=comparisons.silent,
        failed=sum(one.failed for one in comparisons.standings),
    )


def _has_hub(comparisons: Comparisons, means: Mapping[str, Aggregate]) -> bool:
    """Return whether one arm is compared with every other one."""
    shared = set.intersection(*({pair.a, pair.b} for pair in comparisons.pairs))
    return bool(shared) and len(comparisons.pairs) == len(means) - 1


def _leaderboard(
    means: Mapping[str, Aggregate],
    pairs: Sequence[Comparison],
    *,
    left: Mapping[str, int] | None = None,
    metric: str,
    sign: int,
    margin: float | None,
    silent: list[Silent],
    failed: int,
) -> Leaderboard:
    """`left` is the look at which arms left a race: those that stayed longer come first, whatever their means."""
    distances, left = _distances(pairs), left or {}
    order = sorted(means, key=lambda label: (-left.get(label, math.inf), by_mean(sign * (means[label].mean or 0.0))))
    first = order[0] if order else ""
    ranks = {label: _ranks(distances.get(label, {}), len(order)) for label in order}
    tied = [pair for pair in _undecided(pairs, first) if ranks[_other(pair, first)][0] == 1]
    return Leaderboard(
        metric=metric,
        sign=sign,
        margin=margin,
        places=[
            Contender(
                label=label,
                aggregate=means[label],
                rank=ranks[label][0],
                worst_rank=ranks[label][1],
                left=left.get(label),
                to_first=None if label == first else distances[label][first],
            )
            for label in order
        ],
        distances={
            a: {b: distances[a][b] for b in order[place + 1 :] if b in distances[a]}
            for place, a in enumerate(order[:-1])
        },
        silent=silent,
        cases=means[first].count if order else 0,
        failed=failed,
        detectable=[found for pair in tied if (found := _detectable(pair, first)) is not None],
        stated=max((pair.stated for pair in pairs if pair.stated), key=lambda one: one.seen, default=None),
        unless=[
            Unless(ahead=lead[0], other=lead[1], breakpoint=pair.breakpoint)
            for pair in sorted(tied, key=lambda pair: order.index(_other(pair, first)))
            if pair.breakpoint is not None and pair.breakpoint.tells and (lead := _lead(pair))
        ],
        to_settle=_to_settle(min(tied, key=lambda pair: order.index(_other(pair, first))), first)
        if tied and not metric
        else None,
        priced=next(((first, _other(pair, first), pair.price) for pair in pairs if pair.price is not None), None),
    )


def _undecided(pairs: Sequence[Comparison], first: str) -> list[Comparison]:
    """Return the pairs of the first arm that nobody can tell apart."""
    return [pair for pair in pairs if first in (pair.a, pair.b) and pair.verdict == "cannot tell"]


def _other(pair: Comparison, one: str) -> str:
    return pair.b if pair.a == one else pair.a


def _lead(pair: Comparison) -> tuple[str, str]:
    """Return the arm of a pair that is ahead so far, and the other one."""
    ahead = (pair.difference or 0.0) > 0
    return (pair.a, pair.b) if ahead is not pair.lower_is_better else (pair.b, pair.a)


def _detectable(pair: Comparison, first: str) -> Detectable | None:
    """Return the gap that these cases would show; None if it is not known, or a gap as large as that did not show."""
    if pair.detectable is None or pair.detectable <= abs(pair.difference or 0.0):
        return None
    return Detectable(other=_other(pair, first), gap=pair.detectable, count=pair.count, rough=pair.detectable_rough)


def _to_settle(pair: Comparison, first: str) -> tuple[str, float, int] | None:
    """Return a gap that these cases are too few to show, and how many would show it."""
    smallest = pair.detectable
    if smallest is None or not pair.std_err or pair.count < 2:
        return None
    delta = next((delta for delta in _DELTAS if delta < 0.7 * smallest), _DELTAS[-1])
    spread, alpha = pair.std_err * math.sqrt(pair.count), 1 - pair.level
    # Where differences are skewed or tied, these cases show less than their spread would let one think; so will others.
    shape = max(1.0, smallest / detectable(spread, pair.count, alpha=alpha))
    cases = cases_to_see(shape * spread, delta, alpha=alpha, beta=0.2, pilot=max(2, pair.units))
    return _other(pair, first), delta, cases


def _distances(pairs: Sequence[Comparison]) -> dict[str, dict[str, Distance]]:
    distances: dict[str, dict[str, Distance]] = {}
    for pair in pairs:
        there = Distance(
            verdict=pair.verdict,
            difference=pair.difference,
            ci95=pair.ci95,
            count=pair.count,
            here=_on_this_case(pair),
        )
        distances.setdefault(pair.a, {})[pair.b] = there
        distances.setdefault(pair.b, {})[pair.a] = _turned(there)
    return distances


def _on_this_case(pair: Comparison) -> Distance | None:
    """Return what holds on the only case; None if there are more, or too few answers to it."""
    found = pair.on_this_case
    if found is None:
        return None
    return Distance(verdict=found.verdict, difference=found.test.difference, ci95=found.test.ci95, count=1)


def _turned(distance: Distance) -> Distance:
    return Distance(
        verdict=opposite(distance.verdict),
        difference=None if distance.difference is None else -distance.difference,
        ci95=None if distance.ci95 is None else (-distance.ci95[1], -distance.ci95[0]),
        count=distance.count,
        here=distance.here and _turned(distance.here),
    )


def _ranks(distances: Mapping[str, Distance], arms: int) -> tuple[int, int]:
    """Return the best and the worst rank of an arm: as many arms are above it, and below it, as the verdicts say."""
    above = sum(distance.verdict == "worse" for distance in distances.values())
    below = sum(distance.verdict == "better" for distance in distances.values())
    return 1 + above, arms - below
