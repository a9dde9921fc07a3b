"""The seam between deciding and doing: the engine decides which trials are left, an executor carries them out.

`engine/local.py` carries them out in this process. Another executor could send them to other machines, each with a
local one: it needs nothing from the engine but this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from fairtrial.core.answer import Answer, Failure, Outcome
from fairtrial.core.experiment import Arm
from fairtrial.core.judge import Judge
from fairtrial.core.listening import Listener
from fairtrial.core.score import Score, Unscored
from fairtrial.core.trial import Trial


class Lane(NamedTuple):
    """Arms that share a limit, and how many of their trials are worth having in hand at once."""

    arms: Sequence[Arm]
    width: int


class Reports(Protocol):
    """To whom an executor reports. Each call returns once what it reported is durable."""

    async def answered(self, trial: Trial, outcome: Outcome) -> Answer | None:
        """An answer or a failure; returns the answer if it is to be scored."""

    async def scored(self, trial: Trial, result: Score | Unscored) -> None:
        """A score, or why there is none."""


class Executor(Protocol):
    """Carries out trials: asks the target, scores the answer, and reports both."""

    async def __aenter__(self) -> Executor:
        """Get ready."""

    async def __aexit__(self, *_: object) -> None:
        """Let go of everything."""

    def lanes(self) -> list[Lane]:
        """The arms, grouped so that one provider's limits do not hold up another's arms."""

    def judges(self) -> Sequence[Judge]:
        """The judges whose calls cost money, ready to be asked."""

    async def try_judge(self, judge: Judge) -> Failure | None:
        """Ask a judge something easy, once; why it cannot be used, or None."""

    async def carry_out(self, trial: Trial, reports: Reports, listener: Listener) -> None:
        """Ask and score one trial; where `trial.stored` is set, only score it."""
