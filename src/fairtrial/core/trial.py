"""A trial: one case, answered by one arm, once more. Its id is a hash of what is asked."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from fairtrial.core.answer import Answer, Request
from fairtrial.core.experiment import Arm, Case
from fairtrial.core.ids import canonical_json
from fairtrial.core.judge import Judgement
from fairtrial.core.place import Place


class Trial(msgspec.Struct, frozen=True):
    """One entry of the plan. `stored` and `judgements` are what an earlier session has of it."""

    id: str
    case: Case
    arm: Arm
    repeat: int
    params: dict[str, Any]
    stored: Answer | None = None
    judgements: tuple[Judgement, ...] = ()

    @property
    def place(self) -> Place:
        """Where it stands in its plan."""
        return Place(self.case.position, self.arm.position, self.repeat)

    def request(self, *, stream: bool) -> Request:
        """What the target is asked. Repeats are independent, so a seed moves on with them."""
        params = self.params
        if self.repeat and params.get("seed") is not None:
            params = {**params, "seed": params["seed"] + self.repeat}
        return Request(
            trial_id=self.id,
            case_id=self.case.id,
            input=self.arm.condition.asked(self.case.input, self.repeat),
            system=self.arm.condition.system,
            mcp=self.arm.condition.mcp,
            params=params,
            defaulted=tuple(name for name in self.arm.defaulted if name not in (self.case.params or {})),
            repeat=self.repeat,
            stream=stream,
        )


class TrialIds:
    """Ids of one arm's trials. What all of them share is hashed once."""

    def __init__(self, arm: Arm) -> None:
        shared = canonical_json([arm.name, arm.target.identity(), arm.condition.identity()])
        self._shared = hashlib.blake2b(shared, digest_size=10)

    def make(self, case: Case, repeat: int, params: dict[str, Any]) -> str:
        """The id of one trial: 20 hexadecimal digits."""
        digest = self._shared.copy()
        digest.update(canonical_json([case.id, case.input, params, repeat]))
        return digest.hexdigest()
