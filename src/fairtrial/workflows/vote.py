"""Blind votes by people: two answers to one case side by side, on random sides, without names."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.analyse.sent import Exchange
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case
from fairtrial.core.place import Place
from fairtrial.store.arriving import check_arrived
from fairtrial.store.votes import Choice, Vote, add_vote, answered_arms, forget_vote, pair_count, vote_of_id, votes
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
    request: str  # what both arms were asked, in words that fit both
    left: str
    right: str
    left_hangs: bool = False
    right_hangs: bool = False
    left_turns: tuple[Exchange, ...] = ()  # of a conversation, before the last answer
    right_turns: tuple[Exchange, ...] = ()


class Poll:
    """The pairs of answers in a run that a voter can vote on: each pair once, in a random order per voter."""

    def __init__(self, run: Run, voter: str, *, seed: int | None = None, total: int | None = None) -> None:
        if len(run.plan_arms) < 2:
            raise FairtrialError("voting needs two arms: this run has one")
        check_arrived(run.record)
        self._run, self._voter = run, voter
        self._random = random.Random(seed)
        self._seen = self._done()
        self._voted = len(self._seen)
        self._total = pair_count(run.store, run.id) if total is None else total
        self._rest: list[Pair] | None = None  # the remaining pairs in order, once they are few

    @property
    def total(self) -> int:
        """The number of pairs of answers."""
        return self._total

    @property
    def voted(self) -> int:
        """The number of pairs that this voter has voted on."""
        return self._voted

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
        return self._ballot(case, repeat, arms[0], arms[1])

    def _ballot(self, position: int, repeat: int, left_arm: int, right_arm: int) -> Ballot:
        run, places = self._run, (Place(position, left_arm, repeat), Place(position, right_arm, repeat))
        trials = dict(run.placed_trials(position, 1))
        case = run.store.cases(run.plan.id, position, 1)[0]
        left, right = (trials[place] for place in places)
        turns = [tuple(run.turns_at(place, case)) for place in places]
        asked = {left.input, right.input}
        return Ballot(
            case_position=position,
            repeat=repeat,
            left_arm=left_arm,
            right_arm=right_arm,
            case_id=left.case_id,
            request=left.input if len(asked) == 1 and not any(turns) else _question(case),
            left=left.answer or "",
            right=right.answer or "",
            left_hangs=is_unresponsive(left.details),
            right_hangs=is_unresponsive(right.details),
            left_turns=turns[0],
            right_turns=turns[1],
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
        name = add_vote(self._run.store, self._run.id, vote)
        self._voted += 1
        return name

    def undo(self, name: str) -> Ballot | None:
        """Delete a vote of this voter and return its pair, on the same sides; None if there is no such vote."""
        row = vote_of_id(self._run.store, self._run.id, name)
        if row is None or not forget_vote(self._run.store, self._run.id, name, self._voter):
            return None
        self._voted -= 1
        self._seen.add((row["case_position"], row["repeat"], row["arm_one"], row["arm_other"]))
        return self._ballot(row["case_position"], row["repeat"], row["left"], _right_arm(row))

    def _draw(self) -> Pair | None:
        """Return a random unseen pair. While most pairs are unseen, drawing is faster than listing them."""
        if self._rest is None and self.remaining > _MANY:
            while True:
                pair = self._any_pair(self._random.randrange(self._run.plan.case_count))
                if pair is not None and pair not in self._seen:
                    return pair
        if self._rest is None:
            self._rest = [pair for pair in self._pairs() if pair not in self._seen]
            self._random.shuffle(self._rest)
        return self._rest.pop() if self._rest else None

    def _any_pair(self, case: int) -> Pair | None:
        """Return a random pair of answers to a case, each as likely as any other; None if there is none."""
        answered = list(answered_arms(self._run.store, self._run.id, case).items())
        weights = [math.comb(len(arms), 2) for _, arms in answered]
        if not any(weights):
            return None
        ((position, repeat), arms) = self._random.choices(answered, weights)[0]
        one, other = sorted(self._random.sample(arms, 2))
        return position, repeat, one, other

    def _pairs(self) -> Iterator[Pair]:
        """Yield every pair of answers to one case."""
        for (position, repeat), arms in answered_arms(self._run.store, self._run.id).items():
            for one, other in combinations(sorted(arms), 2):
                yield position, repeat, one, other

    def _done(self) -> set[Pair]:
        return {
            (row["case_position"], row["repeat"], row["arm_one"], row["arm_other"])
            for row in votes(self._run.store, self._run.id)
            if row["voter"] == self._voter
        }


def _right_arm(vote: dict[str, Any]) -> int:
    return int(vote["arm_other"] if vote["left"] == vote["arm_one"] else vote["arm_one"])


def _question(case: Case) -> str:
    """Return the question as the suite has it: the wording of one arm would tell it from the other."""
    return "\n".join([*(f"[{file.name}]" for file in case.attach), case.input])
