"""Votes of people: two answers to one case side by side, on random sides, without a name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations

import msgspec

from fairtrial.analyse import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.store.votes import Choice, Vote, add_vote, answered_arms, pair_count, votes
from fairtrial.webpage.looking import restless

Pair = tuple[int, int, int, int]  # case, repeat, one arm, other arm
_MANY = 2000
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
        self._seen = self._done()
        self._total = pair_count(run.store, run.id)
        self._rest: list[Pair] | None = None  # what is left, in order, once it is not much

    @property
    def remaining(self) -> int:
        """How many pairs are left."""
        return self._total - len(self._seen)

    def next(self) -> Ballot | None:
        """The next pair, on random sides; None when there is none left."""
        pair = self._draw()
        if pair is None:
            return None
        self._seen.add(pair)
        case, repeat, *arms = pair
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

    def _draw(self) -> Pair | None:
        """A pair that was not seen before. As long as most were not, drawing is quicker than listing."""
        if self._rest is None and self.remaining > _MANY:
            while True:
                case = self._luck.randrange(self._run.plan.case_count)
                pairs = [pair for pair in self._of(case) if pair not in self._seen]
                if pairs:
                    return self._luck.choice(pairs)
        if self._rest is None:
            self._rest = [pair for pair in self._of() if pair not in self._seen]
            self._luck.shuffle(self._rest)
        return self._rest.pop() if self._rest else None

    def _of(self, case: int | None = None) -> Iterator[Pair]:
        """Every two answers to that case, or to the same case."""
        for (position, repeat), arms in answered_arms(self._run.store, self._run.id, case).items():
            for one, other in combinations(sorted(arms), 2):
                yield position, repeat, one, other

    def _done(self) -> set[Pair]:
        """What this voter has voted on before."""
        return {
            (row["case_position"], row["repeat"], row["arm_one"], row["arm_other"])
            for row in votes(self._run.store, self._run.id)
            if row["voter"] == self._voter
        }
