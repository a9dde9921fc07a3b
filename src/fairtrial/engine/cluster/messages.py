"""What the driver and its workers send each other, in batches."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec

from fairtrial.core.answer import Answer, EarlierTurn
from fairtrial.core.chat import Chat
from fairtrial.core.experiment import Arm, Case, ScorerSpec
from fairtrial.core.judge import Judgement
from fairtrial.core.money import Cost
from fairtrial.core.trial import Trial
from fairtrial.engine.job import Job


class Briefing(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has to know before its first trial."""

    job: Job
    scorer: ScorerSpec | None  # instead of the suite's scorers
    scoring: int
    environment: dict[str, str]  # what the suite and its `.env` file name
    version: str
    needs_folder: bool  # whether code in the suite's folder takes part
    share: dict[str, float]  # of the machine, such as its processors


class Assignment(msgspec.Struct, frozen=True, array_like=True):
    """A trial on its way to a worker, which knows the arms already."""

    number: int
    id: str
    case: Case
    arm: int
    repeat: int
    params: dict[str, Any]
    stored: Answer | None
    judgements: tuple[Judgement, ...]
    turns: tuple[EarlierTurn, ...]
    rendered: Chat | None
    listened: bool  # whether somebody follows the answer

    @classmethod
    def of(cls, number: int, trial: Trial, *, listened: bool) -> Assignment:
        """Make an assignment of a trial."""
        content = (trial.params, trial.stored, trial.judgements, trial.turns, trial.rendered)
        return cls(number, trial.id, trial.case, trial.arm.position, trial.repeat, *content, listened)

    def trial(self, arms: dict[int, Arm]) -> Trial:
        """Return the trial."""
        content = (self.params, self.stored, self.judgements, self.turns, self.rendered)
        return Trial(self.id, self.case, arms[self.arm], self.repeat, *content)


class LimitShare(msgspec.Struct, frozen=True):
    """A worker's share of a limit: calls at a time, and seconds during which none may begin."""

    slots: int
    pause: float = 0.0
    number: int = 0  # of the shares that this worker got of this limit


class DriverOrders(msgspec.Struct):
    """One batch from the driver to a worker."""

    assignments: list[Assignment] = []
    cancelled: list[int] = []  # numbers of trials
    replies: dict[int, Any] = {}  # by the number of the call
    shares: dict[str, LimitShare] = {}
    tight: bool = False  # money is short: what is not needed at once goes back


class WorkerCall(msgspec.Struct, frozen=True, array_like=True):
    """What a worker reports or asks for; with an `id` it waits for the reply."""

    trial: int | None
    name: str
    body: bytes  # the arguments
    id: int | None = None


class Use(msgspec.Struct, frozen=True):
    """How a worker uses its share of a limit."""

    share: int = 0  # the number of the share that it keeps to
    busy: int = 0
    waiting: int = 0
    begun: int = 0  # calls since it started
    succeeded: int = 0  # since its last report
    throttled: tuple[float | None, ...] = ()  # the waits that were asked for, since its last report


class Money(msgspec.Struct, frozen=True):
    """What a worker has done with the money that it was lent, since it started."""

    spent: Cost = Cost()
    granted: float = 0.0  # what has arrived
    returned: float = 0.0
    settled: bool = True  # no call is in flight and nothing is left
    highest: dict[str, float] = {}  # by target: the most that a call has cost


class Report(msgspec.Struct):
    """One batch from a worker to the driver."""

    calls: list[WorkerCall] = []
    limits: dict[str, Use] = {}
    money: Money = Money()


def encode(value: Any) -> bytes:
    """Encode a batch, or the arguments of a call. Both ends run the same version."""
    return pickle.dumps(value, protocol=5)


def decode(data: bytes) -> Any:
    """Decode what another process of ours has encoded."""
    return pickle.loads(data)  # noqa: S301  # a worker runs the user's code anyway
