"""The score of an answer, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.file import File
from fairtrial.core.judge import Judgement, JudgementPlace, Panel
from fairtrial.core.workshop import Workshop

Scale = tuple[float | None, float | None]  # worst and best; best below worst: lower is better; None: unbounded
ANY: Scale = (None, None)


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """A value from 0 to 1, and how it came about."""

    value: float
    confidence: float | None = None
    notes: str = ""
    automatic: bool = False  # assigned without looking at the answer
    raw: float | None = None
    max: float = 1.0
    details: dict[str, Any] | None = None
    metrics: dict[str, float] = {}  # measured in addition to the score, each on its own scale
    judgements: tuple[Judgement, ...] = ()
    files: tuple[File, ...] = ()


class Unscored(msgspec.Struct, frozen=True, kw_only=True):
    """Scoring failed. This is never a 0: the trial counts as unscored, for this reason."""

    kind: str
    message: str
    retryable: bool = False
    judgements: tuple[Judgement, ...] = ()


class ScoreContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a scorer can use."""

    response: str
    case: Case
    finish_reason: str | None = None
    folder: Path = Path()
    panel: Panel | None = None
    family: str = ""  # the maker of the target's model
    workshop: Workshop | None = None
    kept: Mapping[JudgementPlace, Judgement] = {}  # valid judgements of this answer from an earlier session

    @property
    def expected(self) -> str:
        """The expected text, stripped; empty if there is none.

        With several accepted answers, a scorer sees one of them at a time, unless it sets `sees_all`.
        """
        return next(iter(self.case.accepted), "")

    @property
    def accepted(self) -> tuple[str, ...]:
        """All accepted answers."""
        return self.case.accepted
