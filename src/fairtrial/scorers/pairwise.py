"""`pairwise`: a model says, in both orders, whether the answer is better than the expected one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.judge import Judge, Judgement
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.judging.pairs import Pair, agreed, first_share, pair_prompt
from fairtrial.judging.panels import ask_panel, combined
from fairtrial.judging.verdict import JudgePrompt


class Pairwise(Scorer, frozen=True, kw_only=True):
    """100 if the judge prefers the answer to the expected one in both orders, 0 if the expected one, else 50.

    `flipped` says how often the order decided, `first_position` how much went to whatever stood first (½: neither).
    To compare the answers of two arms with each other, run `fairtrial pairwise RUN`.
    """

    guide: ClassVar = Guide(
        scale="0, 50 or 100: worse, a tie, better",
        reproducibility="varies, typically by ±5–10 points",
        best_for="is it better than what we have? Against an answer of your own or of another model",
        runs="3–5",
    )
    judged: ClassVar[bool] = True
    sees_all: ClassVar[bool] = True
    instructions: str = ""

    def needs_expected(self) -> bool:
        return True

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if len(case.accepted) > 1:
            yield "pairwise compares with one answer: give one text as `expected`, not a list"

    def scales(self) -> dict[str, Scale]:
        return {"flipped": (0.0, 1.0), "first_position": (0.0, 1.0)}

    async def score(self, context: ScoreContext) -> Score | Unscored:
        pair = Pair(question=context.case.input, one=context.response, other=context.expected)

        def prompt(judge: Judge, number: int) -> JudgePrompt:
            return pair_prompt(pair, judge, swapped=number % 2 == 1, instructions=self.instructions)

        asked = await ask_panel(context, prompt, turns=2)
        if isinstance(asked, Unscored):
            return asked
        merged = tuple(map(_merged, asked.judgements[::2], asked.judgements[1::2]))
        score = combined(merged, asked.how, raw_max=1.0, own=asked.own)
        return msgspec.structs.replace(score, judgements=asked.judgements)


def _merged(there: Judgement, back: Judgement) -> Judgement:
    """Both orders as one judgement."""
    assert there.value is not None and back.value is not None
    return msgspec.structs.replace(
        there,
        value=agreed(there.value, back.value),
        metrics={
            "flipped": float(there.value != back.value),
            "first_position": first_share(there.value, back.value),
        },
    )
