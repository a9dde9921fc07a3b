"""Two answers side by side, judged in both orders: a preference that goes with the order is none."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.core.judge import Judge
from fairtrial.judging.fence import Fence
from fairtrial.judging.verdict import JudgePrompt, Verdict, hash_prompt

_TASK = """\
You compare two answers to one question. Decide which of them serves whoever asked better: what is right and asked for
counts, length and the order in which you see them do not. Think first, decide afterwards. If neither is better, say
tie."""
_WORTH = {"first": 1.0, "tie": 0.5, "second": 0.0}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "better": {"type": "string", "enum": list(_WORTH)}},
    "required": ["reasoning", "better"],
    "additionalProperties": False,
}


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two answers to one question; `reference` is what a right answer says, where that is known."""

    question: str
    one: str
    other: str
    reference: str = ""


def pair_hash(judge_instructions: str, instructions: str = "") -> str:
    """Identity of what a judge is told about every pair."""
    return hash_prompt("pairwise 1", _TASK, judge_instructions, instructions)


def pair_prompt(pair: Pair, judge: Judge, *, swapped: bool, instructions: str = "") -> JudgePrompt:
    """What a judge is asked about a pair; the verdict's value is `one`'s worth (1, ½ or 0), whatever the order."""
    fence = Fence()
    first, second = (pair.other, pair.one) if swapped else (pair.one, pair.other)
    parts = [fence.around("QUESTION", pair.question)]
    if pair.reference:
        parts.append(fence.around("REFERENCE ANSWER", pair.reference))
    parts += [fence.around("FIRST ANSWER", first), fence.around("SECOND ANSWER", second)]
    parts.append(
        'Reply with JSON of this form and nothing else:\n{"reasoning": "…", "better": "first" or "second" or "tie"}'
    )

    def read(reply: Any) -> Verdict:
        worth = _WORTH[reply["better"]]
        return Verdict(value=1 - worth if swapped else worth, reasoning={"reasoning": reply["reasoning"]})

    return JudgePrompt(
        system="\n\n".join(filter(None, (_TASK, judge.instructions, instructions, fence.rule()))),
        text="\n\n".join(parts),
        schema=_SCHEMA,
        read=read,
        hash=pair_hash(judge.instructions, instructions),
        params={"temperature": 0.0},
    )


def agreed(forward: float, backward: float) -> float:
    """What both orders together say of `one`: disagreement is a tie."""
    return forward if forward == backward else 0.5


def first_share(forward: float, backward: float) -> float:
    """How much of the two verdicts went to whatever stood first; ½ is no preference."""
    return (forward + 1 - backward) / 2
