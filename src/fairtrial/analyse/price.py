"""The price of a verdict: what two arms cost so far, and what it takes to know their difference a point better.

A point of certainty is one off the half-width of the interval: ±6.2 becomes ±5.2. It can be had by more cases, by more
answers to the same cases, by more verdicts on the same answers, or by more labels; each takes away only the part of the
uncertainty that it is the cause of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from fairtrial.analyse.arm_scores import SCORE, ArmScores
from fairtrial.analyse.comparison import Means, Price, Way
from fairtrial.analyse.evidence import Evidence
from fairtrial.analyse.scorers_used import scorers_used
from fairtrial.analyse.second_judge import second_judge
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.judge import judge_key
from fairtrial.core.money import Cost, total
from fairtrial.stats import CrossedMean, LabelledMean, variance_of_repeats
from fairtrial.stats.looks import Look
from fairtrial.stats.mean import Estimate, Mean
from fairtrial.store import opinions, totals

_POINT = 0.01
_MOST_TIMES = 50  # as many cases as there are: more than anyone would write
_MOST = 1000  # more answers or verdicts each than anyone would ask for
_MEAN_OF_VERDICTS = frozenset({"llm_judge", "golden_judge"})  # scorers whose score is nothing else


class ArmPrice(NamedTuple):
    """What the answers of an arm and the verdicts on them took so far."""

    answers: int
    verdicts: int  # calls of judges
    cost: Cost
    judging: Cost  # its part
    second: tuple[int, Cost] = (0, Cost())  # of that, what a second judge took

    @property
    def usd_of_answer(self) -> float | None:
        """What an answer costs with the verdicts on it; None where that is unknown, or nothing was paid."""
        return self.cost.known / self.answers if self.answers and self.cost.usd else None

    @property
    def usd_of_verdict(self) -> float | None:
        """What one verdict costs; None where that is unknown, or nothing was paid."""
        return self.judging.known / self.verdicts if self.verdicts and self.judging.usd else None

    @property
    def usd_of_second(self) -> float | None:
        """What one verdict of the second judge costs; None where that is unknown, or nothing was paid."""
        calls, cost = self.second
        return cost.known / calls if calls and cost.usd else None


_NOTHING = ArmPrice(0, 0, Cost(), Cost())
Prices = Callable[[ArmScores], ArmPrice]


def stored_prices() -> Prices:
    """Return what tells the price of arms, from their stores; what is read of a run is kept as long as this."""

    @cache
    def paid(run: StoredRun) -> dict[int, ArmPrice]:
        answers = totals.answers_paid(run.store, run.id)
        judged = totals.judge_totals(run.store, run.id, run.record.scoring)
        nothing, judge = totals.JudgeTotals(0, 0, Cost()), second_judge(run.settings)
        again = opinions.verdict_costs(run.store, run.id, run.record.scoring) if judge else {}
        key = judge_key(judge) if judge else ""
        found = {}
        for position, (given, cost) in answers.items():
            own, second = judged.get(position, nothing), again.get((position, key), (0, Cost()))
            found[position] = ArmPrice(given, own.calls, cost + own.cost, own.cost, second)
        return found

    def price(arm: ArmScores) -> ArmPrice:
        parts = [paid(run).get(position, _NOTHING) for run, _, position in arm.origins]
        return ArmPrice(
            answers=sum(part.answers for part in parts),
            verdicts=sum(part.verdicts for part in parts),
            cost=total(part.cost for part in parts),
            judging=total(part.judging for part in parts),
            second=(sum(part.second[0] for part in parts), total(part.second[1] for part in parts)),
        )

    return price


def price_of(evidence: Evidence, level: float, prices_of: Prices) -> Price:
    """Return the price of the verdict on a pair, whose interval is of this level, before looks share it."""
    prices = [prices_of(arm) for arm in (evidence.a, evidence.b)]
    price = Price(
        calls=sum(one.answers + one.verdicts for one in prices),
        usd=total(one.cost for one in prices).usd,
    )
    half = _half_width(evidence.claimed, level)
    if not half or evidence.metric != SCORE or not isinstance(evidence.estimate, Mean | CrossedMean | LabelledMean):
        return price
    target = half - _POINT if half >= 2 * _POINT else half / 2
    pair = _Pair(evidence, prices, level, target)
    found: dict[Means, int | None] = {
        "cases": pair.cases(),
        "repeats": pair.repeats(),
        "judgements": pair.judgements(),
        "labels" if evidence.by_people else "second_judge": pair.labels(target / half),
    }
    ways = [pair.way(what, more) for what, more in found.items() if more is not None]
    return msgspec.structs.replace(
        price,
        half_width=half,
        target=target,
        ways=sorted(ways, key=lambda way: (way.what == "labels", way.usd or 0.0, way.calls)),
        unknown=pair.unknown(),
    )


def _half_width(estimate: Estimate, level: float) -> float | None:
    interval = estimate.interval(level)
    return None if interval is None else (interval[1] - interval[0]) / 2


class _Pair:
    """Two arms on their common cases, whose interval of a level is to become as narrow as a target."""

    def __init__(self, evidence: Evidence, prices: Sequence[ArmPrice], level: float, target: float) -> None:
        self._arms, self._prices, self._target = (evidence.a, evidence.b), prices, target
        self._level, self._later = evidence.nominal(level), _level_of_more_cases(evidence.look, level)
        estimate, keys = evidence.estimate, evidence.common.keys
        self._labelled = estimate if isinstance(estimate, LabelledMean) else None
        self._between = estimate.between if isinstance(estimate, CrossedMean) else None
        self._mean, self._count = evidence.plain, len(keys)
        columns = [arm.values[SCORE] for arm in self._arms]
        self._answers = [float(column.counts[keys].mean()) for column in columns]  # to a case
        self._judged = any(one.verdicts for one in prices)
        self._noise: list[float] | None = None  # variance of the score between answers to a case, of each arm
        if all(int(column.counts[keys].max()) > 1 for column in columns):
            parts = [
                variance_of_repeats(column.counts[keys], column.sums[keys], arm.spread.squares[keys])
                for arm, column in zip(self._arms, columns, strict=True)
            ]
            self._noise = [part.repeat or 0.0 for part in parts]
        self._verdicts = [_verdict_noise(*one) for one in zip(self._arms, prices, strict=True)] if self._judged else []

    def cases(self) -> int | None:
        """Return how many more cases it takes: to ask them is another look, whose interval is wider by itself."""
        if self._labelled is not None:  # the labels set the limit: cases without them hardly help
            return None
        units, most = self._mean.units, _MOST_TIMES * self._mean.units
        found = _fewest(lambda more: self._foreseen(units + more, 1.0, self._later) <= self._target, most - units)
        return None if found is None else math.ceil(found * self._count / units)

    def repeats(self) -> int | None:
        """Return how many more answers to each case it takes; None if that is unknown, or would not do."""
        if self._noise is None or self._labelled is not None:
            return None
        return self._with_less_noise([(noise, now) for noise, now in zip(self._noise, self._answers, strict=True)])

    def judgements(self) -> int | None:
        """Return how many more verdicts on each answer it takes; None if that is unknown, or would not do."""
        known = [one for one in self._verdicts if one is not None]
        if len(known) < len(self._arms) or self._labelled is not None:
            return None
        return self._with_less_noise(
            [(noise.variance / now, noise.verdicts) for noise, now in zip(known, self._answers, strict=True)]
        )

    def _with_less_noise(self, noises: Sequence[tuple[float, float]]) -> int | None:
        """Return how many more of each there must be, which variances are divided by."""
        variance = self._mean.variance_of_units
        if not variance:
            return None

        def enough(more: int) -> bool:
            saved = sum(noise / now - noise / (now + more) for noise, now in noises)
            left = math.sqrt(max(0.0, 1 - saved / variance))
            return self._foreseen(self._mean.units, left, self._level) <= self._target

        return _fewest(enough, _MOST)

    def _foreseen(self, units: int, spread: float, level: float) -> float:
        """Return how wide on each side the interval is expected to be with this many units, which deviate so."""
        mean = self._mean.foreseen(units, spread)
        estimate = mean if self._between is None else CrossedMean(mean, self._between)
        return _half_width(estimate, level) or math.inf

    def labels(self, narrower: float) -> int | None:
        """Return how many more cases must be labelled, or judged again, where that corrects the difference."""
        return None if self._labelled is None else self._labelled.labels_for(narrower**2)

    def unknown(self) -> list[Means]:
        """Return what might help, but has left no trace in this run yet."""
        found: list[Means] = []
        if self._labelled is not None:
            return found
        if self._noise is None:
            found.append("repeats")
        if self._judged:
            found += ["judgements"] if None in self._verdicts else []
            found.append("labels")
        return found

    def way(self, what: Means, more: int) -> Way:
        """Return a way with its price."""
        if what == "labels":
            return Way(what=what, more=more, calls=0, usd=None)
        answers = {
            "second_judge": [more * each for each in self._answers],
            "cases": [more * each for each in self._answers],
            "repeats": [float(more * self._count)] * 2,
            "judgements": [more * each * self._count for each in self._answers],
        }[what]
        if what == "second_judge":
            calls, prices = sum(answers), [one.usd_of_second for one in self._prices]
        elif what == "judgements":
            calls, prices = sum(answers), [one.usd_of_verdict for one in self._prices]
        else:
            each = [1 + one.verdicts / one.answers if one.answers else 1.0 for one in self._prices]
            calls = sum(map(math.prod, zip(answers, each, strict=True)))
            prices = [one.usd_of_answer for one in self._prices]
        known = [price for price in prices if price is not None]
        usd = sum(map(math.prod, zip(answers, known, strict=True))) if len(known) == len(prices) else None
        return Way(what=what, more=more, calls=round(calls), usd=usd)


def _fewest(enough: Callable[[int], bool], most: int) -> int | None:
    """Return the fewest that are enough, from 1 on; None if `most` are not."""
    high = 1
    while not enough(high):
        if high == most:
            return None
        high = min(2 * high, most)
    low = high // 2  # too few, or none
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _level_of_more_cases(look: Look | None, level: float) -> float:
    """Return the level by itself of the next look, at more cases, where all looks together may err at a level."""
    before = 1 if look is None else look.again
    return Look(number=1, planned=1, again=before + 1).nominal(level)


class _VerdictNoise(NamedTuple):
    """How much verdicts on the same answer differ, and how many there are."""

    variance: float
    verdicts: float


def _verdict_noise(arm: ArmScores, price: ArmPrice) -> _VerdictNoise | None:
    """Return the noise of an arm's judges; None where no answer was judged twice, or a score is more than a mark."""
    if len(arm.origins) > 1 or price.verdicts <= price.answers:
        return None
    run, _, position = arm.origins[0]
    if not {scorer["type"] for scorer in scorers_used(run.store, run.record, run.plan_arms)} <= _MEAN_OF_VERDICTS:
        return None
    found = opinions.verdict_noise(run.store, run.id, run.record.scoring).get(position)
    return None if found is None else _VerdictNoise(*found)
