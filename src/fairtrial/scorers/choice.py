"""`choice`: does the answer choose the right letter of a multiple-choice question?"""

from __future__ import annotations

import string
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.choices import find_choice, find_text, index_of, letters_for
from fairtrial.text.printable import clipped

_MAX_QUOTED = 40


class Choice(Scorer, frozen=True, kw_only=True):
    """The right letter scores 1, any other, several at once or none 0.

    The letter is found in the usual forms: `B`, `(B)`, `B. Paris`, `**Answer: B**`, "the correct option is B",
    `\\boxed{B}`; the last one counts. If the case has `choices` (a key of the case, or a column with a list), their
    letters are A, B, C … in their order, `expected` may also be the text of the right one, and so may the answer.
    `letters` are other letters, such as `ABCDE` or `TF`.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="deterministic",
        best_for="multiple-choice questions",
    )
    letters: Annotated[str, msgspec.Meta(pattern="^[A-Z]*$")] = ""

    def needs_expected(self) -> bool:
        return True

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        letters = self._letters(case)
        if len(letters) < len(case.choices):
            yield f"the case has {len(case.choices)} choices, but there are {len(letters)} letters"
        elif index_of(next(iter(case.accepted), ""), case.choices, letters) is None:
            hint = " or the text of a choice" if case.choices else ""
            yield f"`expected` must be one of the letters {letters}{hint}, not {next(iter(case.accepted), '')!r}"

    def _letters(self, case: Case) -> str:
        return self.letters or letters_for(len(case.choices)) or string.ascii_uppercase

    async def score(self, context: ScoreContext) -> Score | Unscored:
        letters, choices = self._letters(context.case), context.case.choices
        right = index_of(context.expected, choices, letters)
        if right is None:
            return Unscored(
                kind="expected", message=f"the expected value {context.expected!r} is not one of the choices"
            )
        letter = find_choice(context.response, letters)
        chosen = letters.index(letter) if letter else find_text(context.response, choices)
        if chosen is None:
            return Score(value=0.0, raw=0.0, confidence=1.0, notes="no choice in the answer")
        value = float(chosen == right)
        name = f" ({clipped(choices[chosen], _MAX_QUOTED)})" if chosen < len(choices) else ""
        return Score(value=value, raw=value, confidence=1.0, notes=f"chose {letters[chosen]}{name}")
