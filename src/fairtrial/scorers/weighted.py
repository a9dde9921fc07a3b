"""`weighted`: the weighted mean of several scorers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.composite import Composite, PartSpec, combined, score_parts
from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scorer and its weight."""

    scorer: str | dict[str, Any]
    weight: Annotated[float, msgspec.Meta(ge=0)] = 1.0


class Weighted(Composite, frozen=True, kw_only=True):
    """The weighted mean of its parts. If a part cannot be scored, the answer is unscored."""

    guide: ClassVar = Guide(
        scale="0–100, a weighted mean",
        reproducibility="as its parts",
        best_for="a trade-off between several qualities",
    )
    scorers: Annotated[list[Part], msgspec.Meta(min_length=1)]

    def parts(self) -> Sequence[PartSpec]:
        return [part.scorer for part in self.scorers]

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if sum(part.weight for part in self.scorers) <= 0:
            yield "a weighted scorer needs at least one weight above 0"
        yield from super().check(case, folder)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        parts = await score_parts(self, context)
        if isinstance(parts, Unscored):
            return parts
        weights = [part.weight for part in self.scorers]
        value = sum(w * score.value for w, (_, score) in zip(weights, parts, strict=True)) / sum(weights)
        notes = ", ".join(f"{name} {score.value:.2f} × {w:g}" for w, (name, score) in zip(weights, parts, strict=True))
        return combined(value, notes, parts)
