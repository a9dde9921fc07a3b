"""`best_of`: the best score against several references."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.composite import Composite, PartSpec, combined, score_parts
from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide


class BestOf(Composite, frozen=True, kw_only=True):
    """The best score of another scorer against each of the `references`, and against `expected` if the case has one.

    A case whose `expected` is a list needs no `best_of`: there, the best one counts in any case.
    """

    guide: ClassVar = Guide(
        scale="0–100, the best reference",
        reproducibility="as its part",
        best_for="translations and summaries with several references for all cases",
    )
    scorer: str | dict[str, Any]
    references: Annotated[list[str], msgspec.Meta(min_length=1)]

    def parts(self) -> Sequence[PartSpec]:
        return [self.scorer]

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if not all(map(str.strip, self.references)):
            yield "a text in `references` is blank"
        yield from super().check(self._with_references(case), folder)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        case = self._with_references(context.case)
        parts = await score_parts(self, msgspec.structs.replace(context, case=case))
        if isinstance(parts, Unscored):
            return parts
        ((name, part),) = parts
        return combined(part.value, f"{name}: {part.notes}", parts)

    def _with_references(self, case: Case) -> Case:
        texts = tuple(dict.fromkeys((*case.accepted, *self.references)))
        return msgspec.structs.replace(case, expected=texts if len(texts) > 1 else texts[0])
