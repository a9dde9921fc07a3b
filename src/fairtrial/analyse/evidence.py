"""What the difference of two arms rests on: one estimate for each pair, from which everything else is read.

Of a run that could end as soon as it was sure, bets that hold whenever it ended; where people labelled answers of both
arms, the judges' difference corrected by those labels; where an earlier run of both is named that had more cases, the
difference with what that tells of these cases taken out; else the mean difference over cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from fairtrial.analyse.common import Common
from fairtrial.analyse.score_table import SCORE, ArmScores, Ends, ScoreTable
from fairtrial.core.score import Scale
from fairtrial.core.stopping import case_order
from fairtrial.stats import Bets, ControlledMean, LabelledMean
from fairtrial.stats.correction import why_not
from fairtrial.stats.mean import ALPHA, Bounds, Estimate, Mean
from fairtrial.stats.one_arm import limits


class Anytime:
    """The running intersection of everything that the bets ruled out, and its middle. It has one level: its own."""

    def __init__(self, bets: Bets, margin: float | None) -> None:
        self._bets = bets
        self._now = bets.now()
        self._margin = margin
        self.level = bets.alpha

    @property
    def mean(self) -> float | None:
        """The middle of the interval: when a run stops, its mean is too high."""
        return self._now.mean if self._now.middle is None else self._now.middle

    def interval(self, alpha: float = ALPHA) -> Bounds | None:
        """None where what was seen contradicts itself."""
        return self._now.interval

    def p_value(self, point: float = 0.0) -> float | None:
        """Of 0; where both directions were sure at some time, nobody can tell."""
        above, below = self._bets.p_above(), self._bets.p_below()
        return 1.0 if max(above, below) < self.level else min(above, below)

    def p_within(self, margin: float) -> float | None:
        """Of the margin that the bets were made about."""
        if margin != self._margin:
            return None
        return max(self._bets.p_above(-margin), self._bets.p_below(margin))


class Evidence:
    """Everything about the difference a − b of one pair, before it is decided."""

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
    ) -> None:
        """`family` is how many comparisons share what bets may lose."""
        self.scores, self.a, self.b, self.metric = scores, a, b, metric
        holder = a if metric in a.scales else b
        self.scale: Scale = holder.scales.get(metric, (None, None))
        self.sign = holder.sign(metric)
        self.common = scores.common(a, b, metric)
        self._margin, self._largest, self._earlier, self._family = margin, largest, earlier, family

    @cached_property
    def plain(self) -> Mean:
        """The mean difference over cases, as they were scored."""
        return self.common.mean(self.scale, self._largest)

    @cached_property
    def estimate(self) -> Estimate:
        """What decides."""
        return self._anytime or self._corrected or self._controlled or self.plain

    @property
    def anytime(self) -> bool:
        """Whether it holds at whatever moment the run ended."""
        return isinstance(self.estimate, Anytime)

    @property
    def labels(self) -> int:
        """How many labelled cases correct it; 0 where none do."""
        return self.estimate.labelled if isinstance(self.estimate, LabelledMean) else 0

    @property
    def saved(self) -> float | None:
        """The share of the variance that an earlier run saved; None where none was used."""
        return self.estimate.saved if isinstance(self.estimate, ControlledMean) else None

    @cached_property
    def _anytime(self) -> Anytime | None:
        """The bets that a run itself made: the same stakes, on the differences in the order in which they came."""
        return self._bets_on(self.common)

    def _bets_on(self, common: Common) -> Anytime | None:
        stopping = next((one for one in (self.a, self.b) if one.stop is not None), None)
        bounds = limits(self.scale, np.concatenate([common.a, common.b]))
        if stopping is None or len(stopping.source.runs) > 1 or not common.plain or not len(common.keys):
            return None
        if not all(map(np.isfinite, bounds)):
            return None
        run, most = stopping.source.runs[0], bounds[1] - bounds[0]
        turn = {position: number for number, position in enumerate(case_order(run.id, run.plan.case_count))}
        order = np.argsort([turn[stopping.places[key]] for key in common.keys])
        arms = len(run.plan_arms)
        points = () if self._margin is None else (self._margin, -self._margin)
        family = max(arms * (arms - 1) // 2, self._family)
        bets = Bets(alpha=ALPHA / family, bounds=(-most, most), points=points)
        for value in common.d[order]:
            bets.add(float(value))
        return Anytime(bets, self._margin)

    @cached_property
    def _corrected(self) -> LabelledMean | None:
        """Where the same cases have labels of both arms' answers, enough of them, drawn at random."""
        if self.metric != SCORE or not self.common.plain:
            return None
        both = self.a.labels.keys() & self.b.labels.keys()
        place = {key: number for number, key in enumerate(self.common.keys)}
        labelled = [key for key in place if key in both]
        if not labelled:
            return None
        y, f = (self._gaps(labelled, which) for which in (0, 1))
        rest = self.common.d[[place[key] for key in place if key not in both]]
        return None if why_not(y, f, rest) else LabelledMean(y, f, rest, bounds=(-1.0, 1.0))

    @cached_property
    def _controlled(self) -> ControlledMean | None:
        """Where an earlier run has both arms on these cases and on more of them, and t holds for the difference."""
        if self._earlier is None or not self.common.plain or self.plain.method != "t":
            return None
        before = {one.arm.name: one for one in self._earlier.arms}
        a, b = before.get(self.a.arm.name), before.get(self.b.arm.name)
        if a is None or b is None or a is b:
            return None
        known = self._earlier.common(a, b, self.metric)
        value = dict(zip(known.keys, known.d, strict=True))
        if not value.keys() >= set(self.common.keys) or len(value) <= len(self.common.keys):
            return None
        return ControlledMean(self.common.d, [value[key] for key in self.common.keys], known.d)

    def _gaps(self, keys: list[str], which: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """a − b on labelled cases: by people (0), or by the judges on the very answers that people labelled (1)."""
        return np.asarray([self.a.labels[key][which] - self.b.labels[key][which] for key in keys], dtype=np.float64)

    def with_failures(self, *, against: int, level: float) -> tuple[float | None, Bounds | None, int] | None:
        """Difference, interval and cases with every failed trial counted against one of the two (1: a, −1: b).

        Bets are made anew; what was corrected, controlled or declared keeps its interval, moved by what the failures
        move the mean.
        """
        filled = self._filled(against)
        if filled is None:
            return None
        count, plain = len(filled.keys), filled.mean(self.scale)
        if self.anytime:
            bets = self._bets_on(filled)
            return (bets.mean, bets.interval(), count) if bets is not None else None
        if self.estimate is self.plain and self._largest is None:
            return plain.mean, plain.interval(level), count
        interval, moved = self.estimate.interval(level), (plain.mean or 0.0) - (self.plain.mean or 0.0)
        bounds = None if interval is None else (interval[0] + moved, interval[1] + moved)
        return (self.estimate.mean or 0.0) + moved, bounds, count

    def _filled(self, against: int) -> Common | None:
        """The common cases with every failed trial as the worst for one of the two, and as the best for the other.

        None where nothing failed, or no scale says what that would be.
        """
        if (not self.a.failed and not self.b.failed) or None in self.scale:
            return None
        worst: Ends = "worst" if against > 0 else "best"
        best: Ends = "best" if against > 0 else "worst"
        one: Mapping[str, float] = self.a.means(self.metric, failures=worst)
        other: Mapping[str, float] = self.b.means(self.metric, failures=best)
        return self.scores.joined(one, other)
