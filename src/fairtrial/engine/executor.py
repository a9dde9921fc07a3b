"""The interface between planning and execution: the engine picks the remaining trials, an executor carries them out.

`engine/local.py` carries them out in this process; `engine/cluster/` sends them to workers in other processes, each
with a local executor of its own. This interface is all that an executor needs from the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from fairtrial.core.answer import Answer, EarlierTurn, Outcome
from fairtrial.core.experiment import Arm
from fairtrial.core.judge import Judge, Judgement
from fairtrial.core.listening import Listener
from fairtrial.core.money import Cost
from fairtrial.core.score import Score, Unscored
from fairtrial.core.trial import Trial


class Lane(NamedTuple):
    """Arms that share a rate limit, and how many of their trials to run at once."""

    arms: Sequence[Arm]
    width: int  # calls at the same time
    trials: int  # trials at the same time: while some are asked, others are stored and scored


class Reports(Protocol):
    """Receives an executor's results. Each call returns once the reported result is durable."""

    def wanted(self, trial: Trial) -> bool:
        """Return whether a trial should still be asked: the run may have been stopped while it waited for its turn."""

    async def turn_answered(self, trial: Trial, number: int, turn: EarlierTurn, cost: Cost) -> None:
        """Report a turn of a conversation that goes on, or a user's reply in it; `cost` is that of the last call."""

    async def answered(self, trial: Trial, outcome: Outcome) -> Answer | None:
        """Report an answer or a failure; return the answer if it should be scored."""

    async def verdicts(self, trial: Trial) -> tuple[Judgement, ...]:
        """Return the verdicts that are known on an answer from the cache."""

    async def scored(self, trial: Trial, result: Score | Unscored) -> None:
        """Report a score, or why there is none."""


class Executor(Protocol):
    """Carries out trials: asks the target, scores the answer, and reports both."""

    async def __aenter__(self) -> Executor:
        """Open the executor."""

    async def __aexit__(self, *_: object) -> None:
        """Release all resources."""

    def lanes(self) -> list[Lane]:
        """Return the arms grouped so that one provider's limits do not delay another provider's arms."""

    def reading(self) -> AbstractContextManager[object]:
        """Return a context to be entered while the next trials are read: they may belong into the same batch."""

    def held(self) -> list[str]:
        """Say in words what holds calls back at the moment, such as a rate limit."""

    def judges(self) -> Sequence[Judge]:
        """Return the judges whose calls cost money, ready to be called."""

    async def carry_out(self, trial: Trial, reports: Reports, listener: Listener) -> None:
        """Ask and score one trial; if `trial.stored` is set, only score it."""
