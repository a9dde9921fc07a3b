"""Pairwise judging of two answers in both orders; a preference that changes with the order counts as a tie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fairtrial.core.file import File
from fairtrial.core.judge import Judge
from fairtrial.judging.fence import Fence
from fairtrial.judging.verdict import JudgePrompt, Verdict, hash_prompt

_TASK = """\
You compare two answers to one question. Decide which of them serves whoever asked better: what is right and asked for
counts, length and the order in which you see them do not. Think first, decide afterwards. If neither is better, say
tie."""
_VALUES = {"first": 1.0, "tie": 0.5, "second": 0.0}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "better": {"type": "string", "enum": list(_VALUES)}},
    "required": ["reasoning", "better"],
    "additionalProperties": False,
}


class PageEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence about an answer that is a web page: what a browser measured, and screenshots."""

    facts: str = ""
    images: tuple[File, ...] = ()


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two answers to one question; `reference` is a right answer, if one is known."""

    question: str
    one: str
    other: str
    reference: str = ""
    one_shown: PageEvidence = PageEvidence()
    other_shown: PageEvidence = PageEvidence()


def pair_hash(judge_instructions: str, instructions: str = "") -> str:
    """Return the hash of the instructions that a judge gets with every pair."""
    return hash_prompt("pairwise 1", _TASK, judge_instructions, instructions)


def pair_prompt(
    pair: Pair, judge: Judge, *, swapped: bool, instructions: str = "", fill: Callable[[str], str] = str
) -> JudgePrompt:
    """Return the prompt for a pair; the verdict's value is that of `one` (1, ½ or 0) in either order.

    `fill` fills the case into instructions that are templates.
    """
    fence = Fence()
    both = [(pair.one, pair.one_shown), (pair.other, pair.other_shown)]
    if swapped:
        both.reverse()
    parts = [fence.around("QUESTION", pair.question)]
    if pair.reference:
        parts.append(fence.around("REFERENCE ANSWER", pair.reference))
    images: list[File] = []
    for place, (answer, shown) in zip(("FIRST", "SECOND"), both, strict=True):
        parts.append(fence.around(f"{place} ANSWER", answer))
        if shown.facts:
            parts.append(fence.around(f"WHAT A BROWSER MEASURED IN THE {place} ANSWER", shown.facts))
        if judge.sees and shown.images:
            numbers = " and ".join(str(len(images) + number) for number in range(1, len(shown.images) + 1))
            parts.append(f"The {place.lower()} answer in a browser: picture {numbers}.")
            images += shown.images
    parts.append(
        'Reply with JSON of this form and nothing else:\n{"reasoning": "…", "better": "first" or "second" or "tie"}'
    )

    def read(reply: Any) -> Verdict:
        value = _VALUES[reply["better"]]
        return Verdict(value=1 - value if swapped else value, reasoning={"reasoning": reply["reasoning"]})

    return JudgePrompt(
        system="\n\n".join(filter(None, (_TASK, *map(fill, (judge.instructions, instructions)), fence.rule()))),
        text="\n\n".join(parts),
        schema=_SCHEMA,
        read=read,
        hash=pair_hash(judge.instructions, instructions),
        params={"temperature": 0.0},
        images=tuple(images),
    )


def combine_orders(forward: float, backward: float) -> float:
    """Return the value of `one` from both orders; disagreement is a tie."""
    return forward if forward == backward else 0.5


def first_share(forward: float, backward: float) -> float:
    """Return the share of the two verdicts that went to the first position; ½ means no preference."""
    return (forward + 1 - backward) / 2
