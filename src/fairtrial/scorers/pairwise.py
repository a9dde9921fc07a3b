"""`pairwise`: a judge compares the answer with the expected one, in both orders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.judge import Judge, Judgement
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.judging.pairs import Pair, combine_orders, first_share, pair_prompt
from fairtrial.judging.panels import ask_panel, combine_judgements
from fairtrial.judging.verdict import JudgePrompt, extraction_key, hash_prompt


class Pairwise(Scorer, frozen=True, kw_only=True):
    """100 if the judge prefers the answer to the expected one in both orders, 0 if the expected one, else 50.

    `flipped` is how often the order decided, `first_position` the share of the first answer shown (½: no preference).
    To compare the answers of two arms with each other, run `fairtrial pairwise RUN`.
    """

    guide: ClassVar = Guide(
        scale="0, 50 or 100: worse, a tie, better",
        reproducibility="varies by about 5–10 points between runs",
        best_for="is it better than what we have? Compares with your own answer or another model's",
        runs="3–5",
    )
    judged: ClassVar[bool] = True
    sees_all: ClassVar[bool] = True
    instructions: str = ""

    def needs_expected(self) -> bool:
        return True

    def judge_calls(self, judge: str) -> int:
        return 2  # both orders

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if len(case.accepted) > 1:
            yield "pairwise compares with one answer; give one text as `expected`, not a list"

    def scales(self) -> dict[str, Scale]:
        return {"flipped": (0.0, 1.0), "first_position": (0.0, 1.0)}

    async def score(self, context: ScoreContext) -> Score | Unscored:
        pair = Pair(question=context.question, one=context.response, other=context.expected)

        def prompt(judge: Judge, number: int) -> JudgePrompt:
            asked = pair_prompt(pair, judge, swapped=number % 2 == 1, instructions=self.instructions, fill=context.fill)
            key = extraction_key(self)
            return msgspec.structs.replace(asked, hash=hash_prompt(asked.hash, *key)) if key else asked

        result = await ask_panel(context, prompt, turns=2)
        if isinstance(result, Unscored):
            return result
        merged = tuple(map(_merged, result.judgements[::2], result.judgements[1::2]))
        score = combine_judgements(merged, result.how, raw_max=1.0, own=result.own)
        return msgspec.structs.replace(score, judgements=result.judgements)


def _merged(forward: Judgement, backward: Judgement) -> Judgement:
    """Merge the judgements of both orders into one."""
    assert forward.value is not None and backward.value is not None
    return msgspec.structs.replace(
        forward,
        value=combine_orders(forward.value, backward.value),
        metrics={
            "flipped": float(forward.value != backward.value),
            "first_position": first_share(forward.value, backward.value),
        },
    )
