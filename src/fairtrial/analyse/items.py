"""The cases of a suite, judged by how arms did on them: hard ones, dead ones, and some that are probably wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.rank import better_than
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable
from fairtrial.core.errors import FairtrialError
from fairtrial.core.folding import bare, fold
from fairtrial.stats.items import Subset, closest, items, subsets
from fairtrial.stats.units import Measured

_SURE = 0.95  # of draws in which the order of the arms must be kept
_SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_FEWEST = 10  # cases of a subset
_AGAINST = -0.5  # a correlation below it goes against the other cases
_MOST_OF = 0.8  # of all answers, the same wrong one
_LONGEST = 200  # characters of an answer that others could give in the same words
_RIGHT = 0.5


class CaseItem(msgspec.Struct, frozen=True, kw_only=True):
    """One case over all arms. Scores are 0–1; `difficulty` is what is missing to 1."""

    id: str
    difficulty: Measured
    discrimination: float | None
    dead: str  # "always right", "always wrong", or empty
    suspicious: str  # why its expected answer is perhaps wrong, or empty
    scores: dict[str, Measured]


class CaseAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """Every case that all arms have a score for."""

    sources: list[str]
    arms: list[str]
    cases: list[CaseItem]
    left_out: int
    subsets: list[Subset]
    cheapest: int | None  # cases that keep the order of the arms in 95 % of draws; None where only all of them do

    @property
    def dead(self) -> list[CaseItem]:
        """Those that tell nobody from anybody."""
        return [case for case in self.cases if case.dead]

    @property
    def suspicious(self) -> list[CaseItem]:
        """Those whose expected answer should be looked at."""
        return [case for case in self.cases if case.suspicious]


class _Table:
    """Arms × cases, where all arms have a score."""

    def __init__(self, scores: ScoreTable) -> None:
        self.people = [one for one in scores.arms if one.values.get(SCORE)]
        if not self.people:
            raise FairtrialError("no arm has a score yet: there is nothing to say of the cases")
        means = [one.means() for one in self.people]
        shared = set.intersection(*(set(found) for found in means))
        self.keys = sorted((key for key in shared if scores.weights[key] > 0), key=self._place)
        self.weights = np.asarray([scores.weights[key] for key in self.keys], dtype=np.float64)
        self.left_out = len(set().union(*means)) - len(self.keys)
        if not self.keys:
            raise FairtrialError("no case has a score of every arm: nothing can be said of the cases")
        self.scores = np.asarray([[found[key] for key in self.keys] for found in means], dtype=np.float64)

    def _place(self, key: str) -> tuple[int, str]:
        return min(one.places[key] for one in self.people if key in one.places), key


def analyse_cases(scores: ScoreTable) -> CaseAnalysis:
    """Difficulty, discrimination, dead and suspicious cases, and how many of them would do."""
    table = _Table(scores)
    better = better_than(scores, table.people, SCORE)
    wrong = _common_wrong(scores, table)
    cases = [
        CaseItem(
            id=scores.facts[key].id,
            difficulty=1 - item.mean,
            discrimination=item.discrimination,
            dead=_dead(table.people, key),
            suspicious=wrong.get(key) or _upside_down(table, better, place, item.discrimination),
            scores={one.label: float(table.scores[arm, place]) for arm, one in enumerate(table.people)},
        )
        for place, (key, item) in enumerate(zip(table.keys, items(table.scores), strict=True))
    ]
    count = len(table.keys)
    sizes = sorted({max(_FEWEST, round(share * count)) for share in _SHARES if share * count < count - 1})
    found = subsets(table.scores, better, [size for size in sizes if size < count], table.weights)
    return CaseAnalysis(
        sources=[source.label for source in scores.sources],
        arms=[one.label for one in table.people],
        cases=cases,
        left_out=table.left_out,
        subsets=found,
        cheapest=_cheapest(found) if better.any() else None,
    )


def choose_cases(scores: ScoreTable, size: int) -> list[str]:
    """The ids of so many cases that together stand for all of them."""
    table = _Table(scores)
    if not 1 <= size <= len(table.keys):
        raise FairtrialError(f"choose 1 to {len(table.keys)} cases")
    chosen = closest(table.scores, better_than(scores, table.people, SCORE), size, table.weights)
    return [scores.facts[table.keys[place]].id for place in chosen]


def _cheapest(found: Sequence[Subset]) -> int | None:
    """The smallest from which on the order is kept."""
    good = [subset.kept >= _SURE for subset in found]
    return next((subset.cases for place, subset in enumerate(found) if all(good[place:])), None)


def _dead(people: Sequence[ArmScores], key: str) -> str:
    """Every answer of every arm is right, or every one wrong."""
    values = [value for one in people for value in one.values[SCORE].get(key, ())]
    if len(people) < 2 or not values:
        return ""
    return "always right" if min(values) >= 1 else "always wrong" if max(values) <= 0 else ""


def _upside_down(table: _Table, better: NDArray[np.bool_], place: int, discrimination: float | None) -> str:
    """The best arms miss it, and the worst get it right."""
    column = table.scores[:, place]
    if discrimination is not None and discrimination > _AGAINST:
        return ""
    winners, losers = np.nonzero(better)
    if not len(winners):
        return ""
    against = np.mean(column[winners] < column[losers])
    plain = column[winners].mean() < _RIGHT <= column[losers].mean()
    return "better arms miss it, worse ones get it right" if against > _RIGHT and plain else ""


def _common_wrong(scores: ScoreTable, table: _Table) -> dict[str, str]:
    """Cases on which nearly every answer, of several arms, is the same and counts as wrong."""
    suspects = {key for place, key in enumerate(table.keys) if table.scores[:, place].mean() < _RIGHT}
    if len(table.people) < 2 or not suspects:
        return {}
    said: dict[str, Counter[str]] = {}
    by: dict[tuple[str, str], set[str]] = {}
    for key, arm, answer in _answers(scores, table.people, suspects):
        said.setdefault(key, Counter())[answer] += 1
        by.setdefault((key, answer), set()).add(arm)
    found = {}
    for key, counts in said.items():
        answer, often = counts.most_common(1)[0]
        if answer and len(by[key, answer]) > 1 and often >= _MOST_OF * counts.total():
            found[key] = f"{often} of {counts.total()} answers say `{answer}`"
    return found


def _answers(scores: ScoreTable, people: Sequence[ArmScores], keys: set[str]) -> Iterator[tuple[str, str, str]]:
    """Short answers to these cases that count as wrong, in folded words; longer ones count as different."""
    for source in scores.sources:
        arms: Mapping[str, ArmScores] = {one.arm.name: one for one in people if one.source is source}
        places = {one.places[key]: key for one in arms.values() for key in keys if key in one.places}
        for run in source.runs:
            names = [arm.name for arm in run.plan_arms]
            for row in run.store.trial_rows(run.id, run.record.scoring, cases=sorted(places)):
                one = arms.get(names[row["arm_position"]])
                if one is None or row["score_value"] is None:
                    continue
                answer = row["answer"] or ""
                wrong = row["score_value"] < _RIGHT and len(answer) <= _LONGEST
                yield places[row["case_position"]], one.label, bare(fold(answer)) if wrong else ""
