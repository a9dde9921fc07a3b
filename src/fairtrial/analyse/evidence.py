"""The evidence for a difference between two arms: one estimate for each pair, from which everything else is read.

The first of these that applies is used: for a run that could stop as soon as it was sure, bets that are valid whenever
it stopped; where people labelled answers of both arms, or a second judge judged some, the judges' difference corrected
by that; where an earlier run of both arms on more cases is named, the difference with that run as a control variate, or
where many other arms have answered more cases, the difference with what they scored as one;
otherwise the mean difference over cases, with the wordings as a random effect where the conditions have several.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fairtrial.analyse.arm_scores import Marks
from fairtrial.analyse.case_table import Chosen, Floats
from fairtrial.analyse.common import Common
from fairtrial.analyse.others import expected_difference
from fairtrial.analyse.score_table import SCORE, ArmScores, Ends, ScoreTable
from fairtrial.analyse.stopping import strictest, watched
from fairtrial.core import formatting
from fairtrial.core.errors import FairtrialError
from fairtrial.core.order import case_order
from fairtrial.core.score import Scale
from fairtrial.stats import Bets, Between, ControlledMean, CrossedMean, LabelledMean, between_columns
from fairtrial.stats.breakpoint import Stated
from fairtrial.stats.correction import FEWEST_LABELS, why_uncorrectable
from fairtrial.stats.crossed import sum_of
from fairtrial.stats.looks import Look, Looked
from fairtrial.stats.mean import ALPHA, Bounds, Estimate, Mean
from fairtrial.stats.one_arm import limits


class Anytime:
    """The interval of differences that the bets never ruled out, and its midpoint. Its level is that of the bets."""

    def __init__(self, bets: Bets, margin: float | None) -> None:
        self._bets = bets
        self._now = bets.now()
        self._margin = margin
        self.level = bets.alpha

    @property
    def mean(self) -> float | None:
        """Return the midpoint of the interval: when a run stops, its mean overstates the difference."""
        return self._now.mean if self._now.middle is None else self._now.middle

    def interval(self, alpha: float = ALPHA) -> Bounds | None:
        """Return the interval; None where the data contradict themselves and every value is ruled out."""
        return self._now.interval

    def p_value(self, point: float = 0.0) -> float | None:
        """Return the p-value against 0; 1 if both directions were significant at some time, as nobody can tell then."""
        above, below = self._bets.p_above(), self._bets.p_below()
        return 1.0 if max(above, below) < self.level else min(above, below)

    def p_within(self, margin: float) -> float | None:
        """Return the equivalence p-value, for the margin that the bets were made about only."""
        if margin != self._margin:
            return None
        return max(self._bets.p_above(-margin), self._bets.p_below(margin))


class Evidence:
    """The data and the estimate of the difference a − b of one pair, before the verdict."""

    def __init__(
        self,
        scores: ScoreTable,
        a: ArmScores,
        b: ArmScores,
        metric: str,
        *,
        margin: float | None = None,
        largest: float | None = None,
        earlier: ScoreTable | None = None,
        family: int = 1,
        one_sided: bool = False,
    ) -> None:
        """`family` is the number of comparisons that share the bets' error level.

        `one_sided` if each limit of an interval is a claim of its own, as in gates.
        """
        self.scores, self.a, self.b, self.metric = scores, a, b, metric
        holder = a if metric in a.scales else b
        self.scale: Scale = holder.scales.get(metric, (None, None))
        self.sign = holder.sign(metric)
        self.common = scores.common(a, b, metric)
        self._margin, self._earlier, self._family = margin, earlier, family
        self.stated = self._stated(largest)
        self._largest = self.stated.largest if self.stated is not None and self.stated.holds else None
        self._one_sided = one_sided

    def _stated(self, largest: float | None) -> Stated | None:
        """Return what was stated: by a command, which must be true, or else by the suites."""
        seen = float(np.abs(self.common.d).max(initial=0.0))
        if largest is None:
            largest = self.scores.largest(self.metric)
            return None if largest is None else Stated(largest=largest, seen=seen)
        stated = Stated(largest=largest, seen=seen)
        if not stated.holds:
            scale = formatting.Scale(self.metric)
            factor, unit = scale.factor, "" if self.metric else scale.unit
            raise FairtrialError(
                f"a case differs by {factor * seen:g}{unit}, more than the stated largest difference of "
                f"{factor * largest:g}{unit}"
            )
        return stated

    @cached_property
    def plain(self) -> Mean:
        """Return the mean difference over cases, as they were scored."""
        return self.common.mean(self.scale, self._largest, one_sided=self._one_sided)

    @cached_property
    def estimate(self) -> Estimate:
        """Return the estimate that the verdict is based on."""
        return self._anytime or self._corrected or self._controlled or self._over(self.common, self._largest)

    @cached_property
    def claimed(self) -> Estimate:
        """Return the estimate with the level and p-values that it may claim: of one of several looks, if planned."""
        return self._at_look(self.estimate)

    @property
    def look(self) -> Look | None:
        """Return which planned look this is; of two arms, the one that has seen less."""
        return None if self.anytime else strictest(self.a.look, self.b.look)

    def nominal(self, level: float) -> float:
        """Return the level of this look by itself, where all looks together may err at a level."""
        return level if self.look is None else self.look.nominal(level)

    def _at_look(self, estimate: Estimate) -> Estimate:
        return estimate if self.look is None else Looked(estimate, self.look)

    def claimed_on(self, chosen: Chosen) -> Estimate:
        """Return what may be claimed of the mean difference over some of the common cases."""
        return self._at_look(self.estimate_on(chosen))

    def estimate_on(self, chosen: Chosen) -> Mean | CrossedMean:
        """Return the mean difference over some of the common cases, with the wordings as a random effect."""
        return self._over(self.common.some(chosen), self._largest)

    def bets_on(self, chosen: Chosen, parts: int) -> Anytime | None:
        """Return bets on some of the common cases, at one of this many parts of 5 %; None unless the run could stop."""
        return self._bets_on(self.common.some(chosen), parts)

    def worst_on(self, inside: Chosen) -> Mean | CrossedMean | None:
        """Return the mean difference over some cases of the table with every failed trial counted against a."""
        imputed = self._impute_failures(1)
        return None if imputed is None else self._over(imputed.some(inside[imputed.keys]), None)

    def _over(self, common: Common, largest: float | None) -> Mean | CrossedMean:
        mean = self.plain if common is self.common else common.mean(self.scale, largest, one_sided=self._one_sided)
        between = self._between_wordings(common)
        return mean if between is None else CrossedMean(mean, between)

    def _between_wordings(self, common: Common) -> Between | None:
        """Return how much the difference varies with the wordings; None if neither condition has several.

        Arms that are asked in the same wordings share their luck, so their differences are taken first.
        """
        tables = [table[common.keys] for one in (self.a, self.b) if (table := one.by_wording(self.metric)) is not None]
        if len(tables) == 2 and self.a.arm.condition.prompts == self.b.arm.condition.prompts:
            tables = [tables[0] - tables[1]]
        parts = [part for table in tables if (part := between_columns(table, common.weights)) is not None]
        return sum_of(parts)

    @property
    def wordings(self) -> int:
        """Return the number of wordings that are treated as a sample; 0 if there are none."""
        return self.estimate.between.columns if isinstance(self.estimate, CrossedMean) else 0

    @property
    def anytime(self) -> bool:
        """Return whether the estimate is valid whenever the run stopped."""
        return isinstance(self.estimate, Anytime)

    @property
    def means(self) -> tuple[float | None, float | None]:
        """Return the means of a and b on the common cases, as every output shows them."""
        common = self.common
        if not len(common.keys):
            return None, None
        if self.anytime:
            first, second = (self.scores.aggregate(one, self.metric, keys=common.keys) for one in (self.a, self.b))
            return first.mean, second.mean
        first_mean, second_mean = (float(np.average(one, weights=common.weights)) for one in (common.a, common.b))
        return first_mean, second_mean

    @property
    def labels(self) -> int:
        """Return the number of labelled cases that correct the estimate; 0 if it is not corrected."""
        return self.estimate.labelled if isinstance(self.estimate, LabelledMean) else 0

    @property
    def saved(self) -> float | None:
        """Return the share of the variance removed by an earlier run; None if none was used."""
        return self.estimate.saved if isinstance(self.estimate, ControlledMean) else None

    @cached_property
    def _anytime(self) -> Anytime | None:
        """Return the bets that the run itself made: the same stakes, on the differences in their original order."""
        return self._bets_on(self.common)

    def _bets_on(self, common: Common, family: int = 1) -> Anytime | None:
        stopping = next((one for one in (self.a, self.b) if watched(one.stop)), None)
        bounds = limits(self.scale, np.concatenate([common.a, common.b]))
        if stopping is None or len(stopping.source.runs) > 1 or not common.plain or not len(common.keys):
            return None
        if not all(map(np.isfinite, bounds)):
            return None
        run, most = stopping.source.runs[0], bounds[1] - bounds[0]
        order_of = np.empty(run.plan.case_count, dtype=np.int64)
        order_of[list(case_order(run.record.order_key, run.plan.case_count))] = np.arange(run.plan.case_count)
        order = np.argsort(order_of[stopping.places[common.keys]])
        arms = len(run.plan_arms)
        points = () if self._margin is None else (self._margin, -self._margin)
        family = max(arms * (arms - 1) // 2, self._family, family)
        bets = Bets(alpha=ALPHA / family, bounds=(-most, most), points=points)
        for value in common.d[order]:
            bets.add(float(value))
        return Anytime(bets, self._margin)

    @cached_property
    def _corrected(self) -> LabelledMean | None:
        """Return the corrected mean, if enough randomly drawn cases have labels, or a second judge's score, of both."""
        if self.metric != SCORE or not self.common.plain:
            return None
        both = self._better[0].keys() & self._better[1].keys()
        chosen = np.isin(self.common.keys, list(both))
        labelled = self.common.keys[chosen].tolist()
        if not labelled:
            return None
        y, f = (self._labelled_differences(labelled, which) for which in (0, 1))
        rest = self.common.d[~chosen]
        return None if why_uncorrectable(y, f, rest) else LabelledMean(y, f, rest, bounds=(-1.0, 1.0))

    @property
    def by_people(self) -> bool:
        """Return whether people labelled enough cases of both arms: what they say counts before any judge."""
        return len(self.a.labels.keys() & self.b.labels.keys()) >= FEWEST_LABELS

    @cached_property
    def _better(self) -> tuple[Marks, Marks]:
        """Return what is better than the judges' scores, next to these, by the cases of each arm that have it."""
        return (self.a.labels, self.b.labels) if self.by_people else (self.a.second, self.b.second)

    @cached_property
    def _controlled(self) -> ControlledMean | None:
        """Return the controlled mean, if it is known how hard these cases are among more, and t is valid here."""
        if not self.common.plain or self.plain.method != "t" or self.plain.count < ControlledMean.fewest:
            return None
        return self._by_others if self._earlier is None else self._by_earlier(self._earlier)

    @cached_property
    def _expected(self) -> tuple[Floats, int] | None:
        return expected_difference(self.scores, self.a, self.b, self.metric)

    @cached_property
    def _by_others(self) -> ControlledMean | None:
        """Return the mean controlled by what other arms scored on these cases and more, of which these were drawn."""
        expected, _ = self._expected or (np.empty(0), 0)
        known = expected[np.isfinite(expected)]
        return ControlledMean(self.common.d, expected[self.common.keys], known) if len(known) else None

    def _by_earlier(self, earlier: ScoreTable) -> ControlledMean | None:
        """Return the mean controlled by an earlier run of both arms on these cases and more."""
        earlier_arms = {one.arm.name: one for one in earlier.arms}
        a, b = earlier_arms.get(self.a.arm.name), earlier_arms.get(self.b.arm.name)
        if a is None or b is None or a is b:
            return None
        common = earlier.common(a, b, self.metric)
        earlier_difference = np.full(len(earlier.facts), np.nan)
        earlier_difference[common.keys] = common.d
        rows = earlier.facts.rows_of(self.scores.facts, self.common.keys)
        if np.any(rows < 0) or np.any(np.isnan(earlier_difference[rows])) or len(common.keys) <= len(self.common.keys):
            return None
        return ControlledMean(self.common.d, earlier_difference[rows], common.d)

    @property
    def others(self) -> int:
        """Return by how many other arms' scores the estimate is controlled."""
        used = isinstance(self.estimate, ControlledMean) and self._earlier is None
        return self._expected[1] if used and self._expected else 0

    def _labelled_differences(self, keys: list[int], which: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return a − b on labelled cases: by people or a second judge (0), or by the judges on the same answers (1)."""
        a, b = self._better
        return np.asarray([a[key][which] - b[key][which] for key in keys], dtype=np.float64)

    def with_failures(self, *, against: int, level: float) -> tuple[float | None, Bounds | None, int] | None:
        """Return difference, interval and cases with every failed trial counted against one arm (1: a, −1: b).
        Bets are made again. A corrected or controlled estimate, or one with a declared largest difference, keeps its
        interval, shifted by as much as the failures shift the mean.
        """
        imputed = self._impute_failures(against)
        if imputed is None:
            return None
        count = len(imputed.keys)
        if self.anytime:
            bets = self._bets_on(imputed)
            return (bets.mean, bets.interval(), count) if bets is not None else None
        if isinstance(self.estimate, Mean | CrossedMean) and self._largest is None:
            worst = self._over(imputed, None)
            return worst.mean, worst.interval(level), count
        plain = imputed.mean(self.scale, one_sided=self._one_sided)
        interval, shift = self.estimate.interval(level), (plain.mean or 0.0) - (self.plain.mean or 0.0)
        bounds = None if interval is None else (interval[0] + shift, interval[1] + shift)
        return (self.estimate.mean or 0.0) + shift, bounds, count

    def _impute_failures(self, against: int) -> Common | None:
        """Return the common cases with failed trials given the worst score for one arm and the best for the other.

        None if nothing failed, or no scale says what the worst and best scores are.
        """
        if (not self.a.failures and not self.b.failures) or None in self.scale:
            return None
        worst: Ends = "worst" if against > 0 else "best"
        best: Ends = "best" if against > 0 else "worst"
        a_means, b_means = self.a.means(self.metric, failures=worst), self.b.means(self.metric, failures=best)
        return self.scores.joined(a_means, b_means)
