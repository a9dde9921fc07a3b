"""Blind votes by people: two answers to one case side by side, on random sides, without names."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations

import msgspec

from fairtrial.analyse import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.store.votes import Choice, Vote, add_vote, answered_arms, pair_count, votes
from fairtrial.webpage.looking import is_unresponsive

Pair = tuple[int, int, int, int]  # case, repeat, one arm, other arm
_MANY = 2000  # pairs
SIDES = ("left", "right", "tie", "neither")  # neither: both are bad


class Ballot(msgspec.Struct, frozen=True, kw_only=True):
    """Two answers to choose from, without the arms' names."""

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
    """The pairs of answers in a run that a voter can vote on: each pair once, in a random order per voter."""

    def __init__(self, run: Run, voter: str, *, seed: int | None = None) -> None:
        if len(run.plan_arms) < 2:
            raise FairtrialError("voting needs two arms: this run has one")
        self._run, self._voter = run, voter
        self._random = random.Random(seed)
        self._seen = self._done()
        self._total = pair_count(run.store, run.id)
        self._rest: list[Pair] | None = None  # the remaining pairs in order, once they are few

    @property
    def remaining(self) -> int:
        """The number of pairs left."""
        return self._total - len(self._seen)

    def next(self) -> Ballot | None:
        """Return the next pair, on random sides; None if none is left."""
        pair = self._draw()
        if pair is None:
            return None
        self._seen.add(pair)
        case, repeat, *arms = pair
        self._random.shuffle(arms)
        trials = {place[1]: trial for place, trial in self._run.placed_trials(case, 1) if place[2] == repeat}
        left, right = (trials[arm] for arm in arms)
        return Ballot(
            case_position=case,
            repeat=repeat,
            left_arm=arms[0],
            right_arm=arms[1],
            case_id=left.case_id,
            request=left.input,
            left=left.answer or "",
            right=right.answer or "",
            left_hangs=is_unresponsive(left.details),
            right_hangs=is_unresponsive(right.details),
        )

    def cast(self, ballot: Ballot, side: str) -> str:
        """Store a vote, one of SIDES, and return its id."""
        if side not in SIDES:
            raise FairtrialError(f"a vote must be one of {', '.join(SIDES)}, not `{side}`")
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

    def _draw(self) -> Pair | None:
        """Return a random unseen pair. While most pairs are unseen, drawing is faster than listing them."""
        if self._rest is None and self.remaining > _MANY:
            while True:
                case = self._random.randrange(self._run.plan.case_count)
                pairs = [pair for pair in self._pairs(case) if pair not in self._seen]
                if pairs:
                    return self._random.choice(pairs)
        if self._rest is None:
            self._rest = [pair for pair in self._pairs() if pair not in self._seen]
            self._random.shuffle(self._rest)
        return self._rest.pop() if self._rest else None

    def _pairs(self, case: int | None = None) -> Iterator[Pair]:
        """Yield every pair of answers to one case, or to each of the cases."""
        for (position, repeat), arms in answered_arms(self._run.store, self._run.id, case).items():
            for one, other in combinations(sorted(arms), 2):
                yield position, repeat, one, other

    def _done(self) -> set[Pair]:
        """Return the pairs that this voter has already voted on."""
        return {
            (row["case_position"], row["repeat"], row["arm_one"], row["arm_other"])
            for row in votes(self._run.store, self._run.id)
            if row["voter"] == self._voter
        }
