"""How conversations end before their last turn: a check that fails, or what a simulated user wanted is there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import msgspec

from fairtrial.core.answer import Answer
from fairtrial.core.score import Score, Unscored
from fairtrial.core.settings import UserSpec
from fairtrial.core.trace import END, with_note
from fairtrial.core.trial import Trial
from fairtrial.engine.scoring import Scoring, Tools
from fairtrial.text.printable import clipped

_MAX_NOTES = 300


class Ends:
    """Makes the checks on which it depends whether a conversation goes on."""

    def __init__(
        self,
        scoring: Scoring,
        place_for: Callable[[Trial], AbstractAsyncContextManager[None]],
        tools_for: Callable[[Trial, Answer], Tools],
    ) -> None:
        """`place_for` waits until there is room on the machine for the checks of a trial."""
        self._scoring, self._place_for, self._tools_for = scoring, place_for, tools_for

    async def of_script(self, trial: Trial, so_far: Answer) -> str:
        """Return why a conversation with written turns is not continued; empty if it is.

        A check that could not be made ends nothing: the trial may still get a score when it is made again.
        """
        async with self._place_for(trial):
            result = await self._scoring.stops(trial, so_far, self._tools_for(trial, so_far))
        if not isinstance(result, Score) or result.value >= 1:
            return ""
        return f"the check after turn {_turn(trial)} failed{_because(result)}"

    async def of_user(self, trial: Trial, so_far: Answer, user: UserSpec) -> str:
        """Return why the conversation with a simulated user is over after this answer; empty if it goes on."""
        turn = _turn(trial)
        failed = await self._missing(trial, so_far, user) if user.end else None
        if user.end and failed is None:
            return f"the check passed after turn {turn}"
        if turn < user.max_turns:
            return ""
        unmet = f", and the check did not pass{_because(failed)}" if failed is not None else ""
        return f"the limit of {user.max_turns} turns was reached{unmet}"

    async def _missing(self, trial: Trial, so_far: Answer, user: UserSpec) -> Score | Unscored | None:
        """Return the first of the user's checks that does not pass."""
        async with self._place_for(trial):
            results = await self._scoring.reached(trial, so_far, user.end, self._tools_for(trial, so_far))
        return next((each for each in results if isinstance(each, Unscored) or each.value < 1), None)


def ended(answer: Answer, why: str) -> Answer:
    """Return the last answer of a conversation with the reason why it was the last one, if there is one to tell."""
    return msgspec.structs.replace(answer, trace=with_note(answer.trace, why, kind=END)) if why else answer


def _turn(trial: Trial) -> int:
    return len(trial.turns) + 1


def _because(result: Score | Unscored) -> str:
    words = result.notes if isinstance(result, Score) else f"it could not be made: {result.message}"
    return f" ({clipped(' '.join(words.split()), _MAX_NOTES)})" if words else ""
