"""Stop a run at planned looks: after equal parts of its cases, each look with its share of 5 %.

Until a look has been taken, no case beyond it is begun. In a race, an arm that is worse than another one leaves at a
look, and only the others are asked on; the pairs share the level of the look evenly, so that an arm stays out whatever
the others do later. Only runs with planned looks import this, as it needs numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from fairtrial.core.experiment import Arm
from fairtrial.core.many_arms import is_large
from fairtrial.core.settings import StopSpec
from fairtrial.engine.early_stop import EarlyStop
from fairtrial.stats.breakpoint import Stated
from fairtrial.stats.looks import FUTILE, Look, Looked, chance_at_the_end, ends_of_looks
from fairtrial.stats.many import levels_of_verdicts
from fairtrial.stats.mean import ALPHA, Mean
from fairtrial.stats.paired import mean_difference
from fairtrial.text.printable import counted

Pair = tuple[int, int]


class PlannedLooks(EarlyStop):
    """Looks at every pair of arms after equal parts of the cases."""

    def __init__(
        self, stop: StopSpec, arms: Sequence[Arm], order: Sequence[int], *, largest: float | None = None
    ) -> None:
        """`largest` is the largest difference that a case can show, if that is less than the scale allows."""
        super().__init__(arms, order)
        self._stop, self._largest = stop, largest
        self._ends = ends_of_looks(len(order), stop.looks)
        self._done = 0  # looks
        self._scores: dict[int, list[float]] = {arm.position: [] for arm in arms}  # of complete cases; NaN: none
        self._all_pairs = math.comb(len(arms), 2)

    def limit(self, concurrency: int) -> int:
        """Return how many cases may be begun: those up to the next look."""
        return self._ends[min(self._done, len(self._ends) - 1)]

    def _completed(self, means: dict[int, float]) -> None:
        for position, scores in self._scores.items():
            if position not in self.left:
                scores.append(means.get(position, math.nan))
        self.due = self._done < len(self._ends) and self.complete >= self._ends[self._done]

    def look(self) -> None:
        """Look at all pairs of the arms that are still asked: has the question an answer, or can it not have one?"""
        self._done += 1
        found = dict(self._estimates())
        if self._stop.race:
            self._race(found)
        elif self._settled(found):
            self._end(self._stop.when)
        if self.reason is None and self._done < len(self._ends) and self._futile(found):
            self._end(f"no gap of {100 * (self._stop.gap or 0):g} points to be expected any more")

    def _estimates(self) -> Iterator[tuple[Pair, Looked]]:
        look = Look(number=self._done, planned=len(self._ends), shape=self._stop.shape)
        for a, b in combinations([position for position in self._scores if position not in self.left], 2):
            yield (a, b), Looked(self._difference(a, b), look)

    def _difference(self, a: int, b: int) -> Mean:
        """Return the difference on the cases that both have a score for, as comparisons make it."""
        first, second = np.asarray(self._scores[a]), np.asarray(self._scores[b])
        both = ~(np.isnan(first) | np.isnan(second))
        seen = float(np.abs(first - second)[both].max(initial=0.0))
        holds = self._largest is not None and Stated(largest=self._largest, seen=seen).holds
        return mean_difference(first[both], second[both], most=self._largest if holds else None)

    def _settled(self, found: Mapping[Pair, Looked]) -> bool:
        """Return whether every pair has a verdict, all of them together."""
        margin, estimates = self._stop.margin, list(found.values())
        within = None if margin is None else [one.p_within(margin) for one in estimates]
        if is_large(len(estimates)):
            levels = [ALPHA / len(estimates)] * len(estimates)
        else:
            levels = levels_of_verdicts([one.p_value() for one in estimates], within, ALPHA)
        return all(self._decided(one, level) for one, level in zip(estimates, levels, strict=True))

    def _decided(self, found: Looked, level: float) -> bool:
        margin = self._stop.margin
        if margin is not None and _below(found.p_within(margin), level):
            return True
        if self._stop.when == "equivalent" and margin is not None:
            mean = found.mean or 0.0
            return abs(mean) > margin and _below(found.p_value(math.copysign(margin, mean)), level)
        return _below(found.p_value(), level)

    def _race(self, found: Mapping[Pair, Looked]) -> None:
        """Take arms out that are worse than another one, and stop when one is left, or the rest are equivalent."""
        level = ALPHA / self._all_pairs
        worse = {(b if (one.mean or 0.0) > 0 else a) for (a, b), one in found.items() if _below(one.p_value(), level)}
        self.left |= dict.fromkeys(sorted(worse), self._done)
        staying = len(self._scores) - len(self.left)
        margin = self._stop.margin
        among = [one for pair, one in found.items() if not worse.intersection(pair)]
        same = margin is not None and among and all(_below(one.p_within(margin), level) for one in among)
        if staying == 1 or same or (self.left and self._done == len(self._ends)):
            what = "one arm" if staying == 1 else f"{staying} {'equivalent ' if same else ''}arms"
            self._end(f"{what} of {len(self._scores)} left in the race")

    def _futile(self, found: Mapping[Pair, Looked]) -> bool:
        """Return whether no open pair has much of a chance to show the planned gap at the end."""
        if self._stop.gap is None:
            return False
        open_pairs = [one for pair, one in found.items() if not self.left.keys() & set(pair)]
        level = ALPHA / self._all_pairs
        return all(not _below(one.p_value(), level) and self._chance(one, level) < FUTILE for one in open_pairs)

    def _chance(self, found: Looked, level: float) -> float:
        """Return the chance to find the planned gap at the last look, in the direction in which it is larger."""
        error = getattr(found.estimate, "std_err", None)
        if not error:
            return 1.0
        share = found.look.number / found.look.planned
        drift = (self._stop.gap or 0.0) / (error * math.sqrt(share))
        last = found.look.last.nominal(level)
        z = (found.mean or 0.0) / error
        return max(chance_at_the_end(side * z, share, drift, last) for side in (1, -1))

    def _end(self, why: str) -> None:
        self.reason = f"{why} at look {self._done} of {len(self._ends)}, after {counted(self.complete, 'case')}"


def _below(p: float | None, level: float) -> bool:
    return p is not None and p < level
