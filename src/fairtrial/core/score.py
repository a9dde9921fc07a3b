"""What an answer is worth, or why nobody can say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.judge import Judgement, JudgementPlace, Panel
from fairtrial.core.workshop import Workshop

Scale = tuple[float | None, float | None]  # worst and best; best below worst: less is better; None: no such bound
ANY: Scale = (None, None)


class File(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was made while scoring and is kept, such as a screenshot."""

    name: str
    media: str
    body: bytes


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """A value from 0 to 1, and how it came about."""

    value: float
    confidence: float | None = None
    notes: str = ""
    automatic: bool = False  # given without looking at the answer
    raw: float | None = None
    max: float = 1.0
    details: dict[str, Any] | None = None
    metrics: dict[str, float] = {}  # what was measured beside the score, on its own scale
    judgements: tuple[Judgement, ...] = ()
    files: tuple[File, ...] = ()


class Unscored(msgspec.Struct, frozen=True, kw_only=True):
    """Scoring failed. Never a 0: the trial is counted as unscored, with this reason."""

    kind: str
    message: str
    retryable: bool = False
    judgements: tuple[Judgement, ...] = ()


class ScoreContext(msgspec.Struct, frozen=True, kw_only=True):
    """All that a scorer may look at."""

    response: str
    case: Case
    finish_reason: str | None = None
    folder: Path = Path()
    panel: Panel | None = None
    family: str = ""  # who made the target
    workshop: Workshop | None = None
    kept: Mapping[JudgementPlace, Judgement] = {}  # usable verdicts on this very answer, from an earlier session

    @property
    def expected(self) -> str:
        """The expected text without surrounding blanks; empty means that none was given.

        Where several are right, a scorer is given one of them at a time, unless it asks to see `accepted`.
        """
        return next(iter(self.case.accepted), "")

    @property
    def accepted(self) -> tuple[str, ...]:
        """Every text that is right."""
        return self.case.accepted
