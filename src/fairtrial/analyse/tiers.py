"""Group arms into tiers: those that cannot be told from the first of their tier, best tier first.

The verdicts are those of `compare` on every pair. Ties are not transitive, so the tiers are a summary; the pairs say
everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec

from fairtrial.analyse.compare import decided
from fairtrial.analyse.comparison import Comparison, Comparisons, Verdict
from fairtrial.analyse.planning import cases_to_see
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import ScoreTable, read_scores, sources_of
from fairtrial.analyse.summary import by_mean
from fairtrial.stats import Aggregate
from fairtrial.stats.units import Interval, Measured

_DELTAS = (0.2, 0.1, 0.05, 0.03, 0.02, 0.01)
_OPPOSITE: dict[Verdict, Verdict] = {"better": "worse", "worse": "better"}


class Distance(msgspec.Struct, frozen=True, kw_only=True):
    """The paired difference of one arm to another: negative if its values are lower. The verdict is on the arm."""

    verdict: Verdict
    difference: Measured | None
    ci95: Interval | None
    count: int  # cases that both have


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """One arm, the best and the worst rank that the verdicts allow, and its distance to the first arm."""

    label: str
    aggregate: Aggregate
    rank: int
    worst_rank: int
    to_first: Distance | None  # None for the first itself


class Tiers(msgspec.Struct, frozen=True, kw_only=True):
    """Every arm that has a score, in tiers; and every pair, the better placed arm first."""

    metric: str  # empty for the score
    sign: int  # 1 if higher is better, −1 if lower is
    margin: Measured | None
    tiers: list[list[Contender]]
    distances: dict[str, dict[str, Distance]]  # distances[a][b] is a's distance to b, where a is placed above b
    unscored: list[str]  # arms without a score
    cases: int  # of the first arm
    failed: int  # trials that failed, of all arms
    detectable: Measured | None  # where the first two cannot be told apart: what their cases show with a power of 80 %
    to_settle: tuple[Measured, int] | None  # a difference between the first two, and the cases that would show it

    @property
    def places(self) -> list[Contender]:
        """Return every arm, the best first."""
        return [place for tier in self.tiers for place in tier]

    @property
    def next_tier(self) -> Contender | None:
        """Return the first arm that is behind the leading ones."""
        return self.tiers[1][0] if len(self.tiers) > 1 else None


def run_tiers(run: Run) -> Tiers:
    """Group the arms of a run by its primary metric, with the margin it was allowed to stop by."""
    return table_tiers(read_scores(sources_of(run)))


def table_tiers(scores: ScoreTable) -> Tiers:
    """Group the arms of one or more runs."""
    metric = scores.primary
    arms = [arm for arm in scores.arms if arm.values.get(metric)]
    margin = None if metric else next((arm.stop.margin for arm in scores.arms if arm.stop is not None), None)
    pairs = decided(scores, list(combinations(arms, 2)), [metric], margin=margin, detailed=0)
    return _tiers(
        {arm.label: scores.aggregate(arm, metric) for arm in arms},
        pairs,
        metric=metric,
        sign=arms[0].sign(metric) if arms else 1,
        margin=margin,
        unscored=[arm.label for arm in scores.arms if not arm.values.get(metric)],
        failed=sum(arm.failures for arm in scores.arms),
    )


def comparison_tiers(comparisons: Comparisons) -> Tiers | None:
    """Group the arms of a comparison; None unless it has every pair of them."""
    means = {one.label: one.aggregate for one in comparisons.standings}
    if len(comparisons.pairs) != len(means) * (len(means) - 1) / 2:
        return None
    worst, best = comparisons.pairs[0].scale
    scored = {label: one for label, one in means.items() if one.mean is not None}
    return _tiers(
        scored,
        [pair for pair in comparisons.pairs if pair.a in scored and pair.b in scored],
        metric=comparisons.metric,
        sign=-1 if worst is not None and best is not None and best < worst else 1,
        margin=comparisons.margin,
        unscored=[label for label in means if label not in scored],
        failed=sum(one.failed for one in comparisons.standings),
    )


def _tiers(
    means: Mapping[str, Aggregate],
    pairs: Sequence[Comparison],
    *,
    metric: str,
    sign: int,
    margin: float | None,
    unscored: list[str],
    failed: int,
) -> Tiers:
    distances = _distances(pairs)
    best_first = sorted(means, key=lambda label: by_mean(sign * (means[label].mean or 0.0)))
    groups: list[list[str]] = []
    rest = best_first
    while rest:
        first = rest[0]
        groups.append([label for label in rest if label == first or distances[label][first].verdict != "worse"])
        rest = [label for label in rest if label not in groups[-1]]
    order = [label for group in groups for label in group]
    undecided = _undecided(pairs, groups[0] if groups else ())
    smallest = undecided.detectable if undecided else None
    ranks = {label: _ranks(distances[label], len(order)) if len(order) > 1 else (1, 1) for label in order}
    return Tiers(
        metric=metric,
        sign=sign,
        margin=margin,
        tiers=[
            [
                Contender(
                    label=label,
                    aggregate=means[label],
                    rank=ranks[label][0],
                    worst_rank=ranks[label][1],
                    to_first=None if label == order[0] else distances[label][order[0]],
                )
                for label in group
            ]
            for group in groups
        ],
        distances={a: {b: distances[a][b] for b in order[place + 1 :]} for place, a in enumerate(order[:-1])},
        unscored=unscored,
        cases=means[order[0]].count if order else 0,
        failed=failed,
        detectable=smallest,
        to_settle=_to_settle(undecided, smallest) if undecided and not metric else None,
    )


def _undecided(pairs: Sequence[Comparison], leading: Sequence[str]) -> Comparison | None:
    """Return the pair of the first two arms, if nobody can tell them apart."""
    first_two = set(leading[:2])
    found = (pair for pair in pairs if {pair.a, pair.b} == first_two and pair.verdict == "cannot tell")
    return next(found, None) if len(first_two) == 2 else None


def _to_settle(pair: Comparison, smallest: float | None) -> tuple[float, int] | None:
    """Return a difference that these cases are too few to show between the first two, and how many would show it."""
    if smallest is None or not pair.std_err:
        return None
    delta = next((delta for delta in _DELTAS if delta < 0.7 * smallest), _DELTAS[-1])
    spread = pair.std_err * math.sqrt(pair.count)
    return delta, cases_to_see(spread, delta, alpha=1 - pair.level, beta=0.2, pilot=max(2, pair.units))


def _distances(pairs: Sequence[Comparison]) -> dict[str, dict[str, Distance]]:
    """Return the distance of every arm to every other one."""
    distances: dict[str, dict[str, Distance]] = {}
    for pair in pairs:
        there = Distance(
            verdict=pair.verdict,
            difference=pair.difference,
            ci95=pair.ci95,
            count=pair.count,
        )
        back = msgspec.structs.replace(
            there,
            verdict=_OPPOSITE.get(pair.verdict, pair.verdict),
            difference=None if pair.difference is None else -pair.difference,
            ci95=None if pair.ci95 is None else (-pair.ci95[1], -pair.ci95[0]),
        )
        distances.setdefault(pair.a, {})[pair.b] = there
        distances.setdefault(pair.b, {})[pair.a] = back
    return distances


def _ranks(distances: Mapping[str, Distance], arms: int) -> tuple[int, int]:
    """Return the best and the worst rank of an arm: as many arms are above it, and below it, as the verdicts say."""
    above = sum(distance.verdict == "worse" for distance in distances.values())
    below = sum(distance.verdict == "better" for distance in distances.values())
    return 1 + above, arms - below
