"""The contract of a scorer: its fields are its options, one context in, one value out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored


class Guide(msgspec.Struct, frozen=True, kw_only=True):
    """What a person should know when choosing a scorer."""

    scale: str
    reproducibility: str
    best_for: str
    runs: str = "1"


class Scorer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to score an answer. A new one is one file in `scorers/` or an entry point `fairtrial.scorers`."""

    guide: ClassVar[Guide]
    judged: ClassVar[bool] = False
    looks: ClassVar[bool] = False  # whether it looks at pages in a browser
    scores_refusals: ClassVar[bool] = False  # whether refusals are for it to score, whatever `on_refusal` says
    sees_all: ClassVar[bool] = False  # whether it is shown every accepted answer at once, not one at a time

    def needs_expected(self) -> bool:
        """Whether a case without an expected text cannot be scored."""
        return False

    def forbids(self) -> bool:
        """Whether an answer must not be what is expected: then none of several may be it."""
        return False

    def needs_judge(self) -> bool:
        """Whether a judge is asked."""
        return self.judged

    def scales(self) -> dict[str, Scale]:
        """The metrics it measures beside the score, each with its scale."""
        return {}

    def prompt_hash(self, instructions: str) -> str | None:
        """What a judge is told, hashed without the answer; None where no judge gives a mark."""
        return None

    def samples(self) -> list[dict[str, Any]] | None:
        """Answers of known worth to calibrate its judge with; None: any text is as good as another."""
        return None

    def top_mark(self) -> float:
        """The best mark that a judge can give, on the scale that it is told."""
        return 10.0

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        """What makes this case impossible to score, known before anything is asked."""
        return ()

    async def score(self, context: ScoreContext) -> Score | Unscored:
        """Score one answer; the same context gives the same value, unless a judge is asked."""
        raise NotImplementedError
