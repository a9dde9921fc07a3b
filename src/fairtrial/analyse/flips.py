"""The cases on which two arms differ most, with their question and both answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable
from fairtrial.core.place import Place

MOST = 3  # in each direction


class Flip(NamedTuple):
    """One case: the value of each arm (its mean over repeats) and its first answer."""

    case: str
    question: str
    a: float
    b: float
    answer_a: str
    answer_b: str

    def turned(self) -> Flip:
        """Return the same case with the arms the other way round."""
        return Flip(self.case, self.question, self.b, self.a, self.answer_b, self.answer_a)


def biggest_flips(
    scores: ScoreTable, a: ArmScores, b: ArmScores, metric: str = SCORE, *, most: int = MOST
) -> list[Flip]:
    """Return the cases on which a is ahead of b by most, then those on which b is ahead of a by most."""
    common = scores.common(a, b, metric)
    better = a.sign(metric) * common.d
    order = np.argsort(-better, kind="stable").tolist()
    ahead = [place for place in order if better[place] > 0][:most]
    behind = [place for place in reversed(order) if better[place] < 0][:most]
    chosen = [*ahead, *behind]
    keys = [int(common.keys[place]) for place in chosen]
    questions = _questions(a, keys)
    answers = zip(_answers(a, keys), _answers(b, keys), strict=True)
    return [
        Flip(scores.facts[key].id, question, float(common.a[place]), float(common.b[place]), *pair)
        for key, place, question, pair in zip(keys, chosen, questions, answers, strict=True)
    ]


def _questions(arm: ArmScores, keys: Sequence[int]) -> list[str]:
    run = arm.source.runs[0]
    return [case.input for case in run.store.cases_at(run.plan.id, arm.places[keys].tolist())]


def _answers(arm: ArmScores, keys: Sequence[int]) -> list[str]:
    run, position = arm.source.runs[0], arm.arm.position
    places = [Place(int(arm.places[key]), position, 0) for key in keys]
    answers = {trial.case_id: trial.answer or "" for trial in run.trials_at(places)}
    cases = run.store.cases_at(run.plan.id, arm.places[keys].tolist())
    return [answers.get(case.id, "") for case in cases]
