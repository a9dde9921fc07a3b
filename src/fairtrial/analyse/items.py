"""Analyse a suite's cases by the arms' scores: which are hard, dead, or probably have a wrong expected answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.case_table import Ints
from fairtrial.analyse.caveats import RepeatedQuestions
from fairtrial.analyse.guidance import about_repeated
from fairtrial.analyse.rank import better_than
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable
from fairtrial.core.errors import FairtrialError
from fairtrial.core.showing import ResultFact, Shown
from fairtrial.stats.items import Subset, closest, items, subsets
from fairtrial.stats.units import Measured
from fairtrial.text.folding import bare, fold

_KEPT_SHARE = 0.95  # the share of draws in which the order of the arms must be kept
_SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_FEWEST = 10  # cases of a subset
_AGAINST = -0.5  # a lower correlation contradicts the other cases
_MOST_OF = 0.8  # the share of all answers that give the same wrong one
_LONGEST = 200  # characters; longer answers are hardly ever worded the same
_RIGHT = 0.5


class SameAnswer(ResultFact, frozen=True, kw_only=True):
    """Nearly all answers to a case, from several arms, are the same and count as wrong."""

    subject: ClassVar = "cases"
    answer: str
    count: int
    of: int


class BetterMiss(ResultFact, frozen=True, kw_only=True):
    """Better arms fail a case that worse ones get right."""

    subject: ClassVar = "cases"


class CaseItem(msgspec.Struct, frozen=True, kw_only=True):
    """One case over all arms. Scores are 0–1; `difficulty` is 1 minus the mean score."""

    id: str
    difficulty: Measured
    discrimination: float | None
    dead: Literal["always right", "always wrong", ""]
    doubt: SameAnswer | BetterMiss | None = msgspec.field(name="suspicious")
    scores: dict[str, Measured]

    @property
    def suspicious(self) -> str:
        """Why its expected answer may be wrong, or empty."""
        return str(self.doubt or "")


class CaseAnalysis(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """Every case that all arms have a score for."""

    sources: list[str]
    arms: list[str]
    cases: list[CaseItem]
    left_out: int
    subsets: list[Subset]
    cheapest: int | None  # fewest cases that keep the order of the arms in 95 % of draws; None if only all do
    repeated: list[RepeatedQuestions]

    @property
    def dead(self) -> list[CaseItem]:
        """Return the cases that do not tell the arms apart."""
        return [case for case in self.cases if case.dead]

    @property
    def suspicious(self) -> list[CaseItem]:
        """Return the cases whose expected answer should be checked."""
        return [case for case in self.cases if case.suspicious]


class _Table:
    """Mean scores as arms × cases, on the cases that all arms have a score for."""

    def __init__(self, scores: ScoreTable) -> None:
        self.arms = [one for one in scores.arms if one.values.get(SCORE)]
        if not self.arms:
            raise FairtrialError("no arm has a score yet: the cases cannot be analysed")
        means = np.asarray([one.means() for one in self.arms])
        rows = np.flatnonzero(~np.isnan(means).any(axis=0) & (scores.weights > 0))
        if not len(rows):
            raise FairtrialError("no case has a score from every arm: the cases cannot be analysed")
        self.keys = rows[np.argsort(self._places(rows), kind="stable")]
        self.weights = scores.weights[self.keys]
        self.left_out = int(np.sum(~np.isnan(means).all(axis=0))) - len(self.keys)
        self.scores = means[:, self.keys]

    def _places(self, rows: Ints) -> Ints:
        """Return the first place that a case has in any plan."""
        places = np.asarray([one.places[rows] for one in self.arms])
        first: Ints = np.where(places < 0, np.iinfo(np.int64).max, places).min(axis=0)
        return first

    @cached_property
    def dead(self) -> list[Literal["always right", "always wrong", ""]]:
        """Whether every answer of every arm to a case is right, or every one is wrong."""
        lowest = np.min([one.spread.lowest[self.keys] for one in self.arms], axis=0)
        highest = np.max([one.spread.highest[self.keys] for one in self.arms], axis=0)
        if len(self.arms) < 2:
            return [""] * len(self.keys)
        ends = zip(lowest, highest, strict=True)
        return ["always right" if low >= 1 else "always wrong" if high <= 0 else "" for low, high in ends]


def analyse_cases(scores: ScoreTable) -> CaseAnalysis:
    """Return difficulty, discrimination, dead and suspicious cases, and how many cases would be enough."""
    table = _Table(scores)
    better = better_than(scores, table.arms, SCORE)
    wrong = _common_wrong(scores, table)
    cases = [
        CaseItem(
            id=scores.facts[key].id,
            difficulty=1 - item.mean,
            discrimination=item.discrimination,
            dead=table.dead[place],
            doubt=wrong.get(key) or _upside_down(table, better, place, item.discrimination),
            scores={one.label: float(table.scores[arm, place]) for arm, one in enumerate(table.arms)},
        )
        for place, (key, item) in enumerate(zip(table.keys, items(table.scores), strict=True))
    ]
    count = len(table.keys)
    sizes = sorted({max(_FEWEST, round(share * count)) for share in _SHARES})
    smaller = subsets(table.scores, better, [size for size in sizes if size < count], table.weights)
    return CaseAnalysis(
        sources=[source.label for source in scores.sources],
        arms=[one.label for one in table.arms],
        cases=cases,
        left_out=table.left_out,
        subsets=smaller,
        cheapest=_cheapest(smaller) if better.any() else None,
        repeated=list(about_repeated(scores)),
    )


def choose_cases(scores: ScoreTable, size: int) -> list[str]:
    """Return the ids of `size` cases that together represent all of them."""
    table = _Table(scores)
    if not 1 <= size <= len(table.keys):
        raise FairtrialError(f"choose 1 to {len(table.keys)} cases")
    chosen = closest(table.scores, better_than(scores, table.arms, SCORE), size, table.weights)
    return [scores.facts[table.keys[place]].id for place in chosen]


def _cheapest(options: Sequence[Subset]) -> int | None:
    """Return the smallest size from which on the order of the arms is kept."""
    good = [subset.kept >= _KEPT_SHARE for subset in options]
    return next((subset.cases for place, subset in enumerate(options) if all(good[place:])), None)


def _upside_down(
    table: _Table, better: NDArray[np.bool_], place: int, discrimination: float | None
) -> BetterMiss | None:
    """Return whether better arms fail the case while worse ones get it right."""
    column = table.scores[:, place]
    winners, losers = np.nonzero(better)
    if not len(winners) or (discrimination is not None and discrimination > _AGAINST):
        return None
    against = np.mean(column[winners] < column[losers])
    plain = column[winners].mean() < _RIGHT <= column[losers].mean()
    return BetterMiss() if against > _RIGHT and plain else None


def _common_wrong(scores: ScoreTable, table: _Table) -> dict[int, SameAnswer]:
    """Return the cases on which nearly all answers, from several arms, are the same and count as wrong."""
    suspects = table.keys[table.scores.mean(axis=0) < _RIGHT]
    if len(table.arms) < 2 or not len(suspects):
        return {}
    counts_by_case: dict[int, Counter[str]] = {}
    arms_by_answer: dict[tuple[int, str], set[str]] = {}
    for key, arm, answer in _answers(scores, table.arms, suspects):
        counts_by_case.setdefault(key, Counter())[answer] += 1
        arms_by_answer.setdefault((key, answer), set()).add(arm)
    reasons = {}
    for key, counts in counts_by_case.items():
        answer, count = counts.most_common(1)[0]
        if answer and len(arms_by_answer[key, answer]) > 1 and count >= _MOST_OF * counts.total():
            reasons[key] = SameAnswer(answer=answer, count=count, of=counts.total())
    return reasons


def _answers(scores: ScoreTable, all_arms: Sequence[ArmScores], keys: Ints) -> Iterator[tuple[int, str, str]]:
    """Yield (case, arm, folded answer) for every scored answer; the answer is empty unless it is short and wrong."""
    for source in scores.sources:
        arms: Mapping[str, ArmScores] = {one.arm.name: one for one in all_arms if one.source is source}
        places = {
            int(place): int(key)
            for one in arms.values()
            for place, key in zip(one.places[keys], keys, strict=True)
            if place >= 0
        }
        for run in source.runs:
            names = [planned.name for planned in run.plan_arms]
            for row in run.store.trial_rows(run.id, run.record.scoring, cases=sorted(places)):
                arm = arms.get(names[row["arm_position"]])
                if arm is None or row["score_value"] is None:
                    continue
                answer = row["answer"] or ""
                wrong = row["score_value"] < _RIGHT and len(answer) <= _LONGEST
                yield places[row["case_position"]], arm.label, bare(fold(answer)) if wrong else ""
