"""Votes of people: two answers to one case side by side, on random sides, without a name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations

import msgspec

from fairtrial.analyse import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.store.votes import Choice, Vote, add_vote, votes
from fairtrial.webpage.looking import restless

SIDES = ("left", "right", "tie", "neither")  # neither: both are bad


class Ballot(msgspec.Struct, frozen=True, kw_only=True):
    """Two answers to choose from; whose they are is not on it."""

    case_position: int
    repeat: int
    left_arm: int
    right_arm: int
    case_id: str
    request: str
    left: str
    right: str
    left_hangs: bool = False
    right_hangs: bool = False


class Poll:
    """What somebody can vote on in a run: every pair of answers once, in an order of their own."""

    def __init__(self, run: Run, voter: str, *, seed: int | None = None) -> None:
        if len(run.plan_arms) < 2:
            raise FairtrialError("it takes two arms to choose between: this run has one")
        self._run, self._voter = run, voter
        self._luck = random.Random(seed)
        self._left = [pair for pair in _pairs(run) if pair not in self._done()]
        self._luck.shuffle(self._left)

    @property
    def remaining(self) -> int:
        """How many pairs are left."""
        return len(self._left)

    def next(self) -> Ballot | None:
        """The next pair, on random sides; None when there is none left."""
        if not self._left:
            return None
        case, repeat, *arms = self._left.pop()
        self._luck.shuffle(arms)
        found = {place[1]: trial for place, trial in self._run.placed_trials(case, 1) if place[2] == repeat}
        left, right = (found[arm] for arm in arms)
        return Ballot(
            case_position=case,
            repeat=repeat,
            left_arm=arms[0],
            right_arm=arms[1],
            case_id=left.case_id,
            request=left.input,
            left=left.answer or "",
            right=right.answer or "",
            left_hangs=restless(left.details),
            right_hangs=restless(right.details),
        )

    def cast(self, ballot: Ballot, side: str) -> str:
        """Keep a choice, one of SIDES. Its id."""
        if side not in SIDES:
            raise FairtrialError(f"a vote is {', '.join(SIDES)}, not `{side}`")
        one, other = sorted((ballot.left_arm, ballot.right_arm))
        winner = {"left": ballot.left_arm, "right": ballot.right_arm}.get(side)
        choice: Choice = "tie" if side == "tie" else "neither"
        if winner is not None:
            choice = "one" if winner == one else "other"
        vote = Vote(
            case_position=ballot.case_position,
            repeat=ballot.repeat,
            arm_one=one,
            arm_other=other,
            choice=choice,
            left=ballot.left_arm,
            voter=self._voter,
        )
        return add_vote(self._run.store, self._run.id, vote)

    def _done(self) -> set[tuple[int, int, int, int]]:
        """What this voter has voted on before."""
        return {
            (row["case_position"], row["repeat"], row["arm_one"], row["arm_other"])
            for row in votes(self._run.store, self._run.id)
            if row["voter"] == self._voter
        }


def _pairs(run: Run) -> Iterator[tuple[int, int, int, int]]:
    """(case, repeat, one arm, other arm) of every two answers to the same case."""
    answered: dict[tuple[int, int], list[int]] = {}
    for place, trial in run.placed_trials():
        if trial.answer is not None:
            answered.setdefault((place[0], place[2]), []).append(place[1])
    for (case, repeat), arms in answered.items():
        for one, other in combinations(sorted(arms), 2):
            yield case, repeat, one, other
