"""Types shared by judges and the scorers that use them: the judge, the panel and the judgement."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from fairtrial.core.answer import Outcome, Request
from fairtrial.core.batch import BatchPlace
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.ids import content_hash
from fairtrial.core.money import Cost
from fairtrial.core.settings import JudgeSpec, PanelSpec

SECOND_JUDGE, SECOND_JUDGE_TOP = "second_judge", 100.0  # the metric that has its score of an answer, and the best one
JudgementPlace = tuple[str, str, int]  # judge, prompt, number


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict of one judge on one answer, or why there is none. Stored in full, so that it can be reviewed."""

    judge: str
    judge_key: str = ""  # hash of the model, its address and its settings
    number: int = 0  # index, if a judge is asked several times
    value: float | None = None
    metrics: dict[str, float] = {}
    reasoning: dict[str, str] = {}
    claims: tuple[str, ...] = ()
    reply: str = ""
    model: str | None = None
    params: dict[str, Any] = {}
    prompt_hash: str = ""
    asked: int = 1  # 2 if a malformed verdict was requested again, 0 if the budget did not allow the call
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: Cost = Cost()
    latency_ms: float | None = None
    failure_kind: str | None = None
    failure_message: str | None = None
    retryable: bool = False
    batched: tuple[BatchPlace, ...] = ()  # where its requests were, if they were sent in batches
    stored: int | None = None  # the number of the scoring that already has it; None if it is new

    @property
    def place(self) -> JudgementPlace:
        """What identifies this judgement among those of the same answer."""
        return (self.judge_key, self.prompt_hash, self.number)


class Judge(msgspec.Struct, frozen=True, kw_only=True):
    """A judge that is ready to be called; its calls go through the same retries and limits as all calls."""

    name: str
    key: str
    family: str
    ask: Callable[[Request], Awaitable[Outcome]]
    params: dict[str, Any] = {}
    instructions: str = ""
    sees: bool = False  # whether it accepts images
    target: TargetSpec | None = None  # the model behind it, if known
    share: float | None = None  # of a second judge: the part of the cases that it judges, too


def judge_key(judge: JudgeSpec) -> str:
    """Return the key of a judge: a hash of its model, address and settings."""
    vision = [judge.vision] if judge.vision is not None else []
    return content_hash([judge.target.identity(), judge.params, *vision])[:16]


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """The judges of a run."""

    judges: tuple[Judge, ...]
    how: PanelSpec = PanelSpec()
    second: bool = False  # whether it stands for every judge that a scorer names
