"""Test a judge with one obvious question, before paying for answers that it could not judge."""

from __future__ import annotations

from typing import Any

from fairtrial.core.answer import Failure
from fairtrial.core.judge import Judge
from fairtrial.judging.asking import judge_request
from fairtrial.judging.fence import Fence
from fairtrial.judging.verdict import JudgePrompt, Verdict, hash_prompt

_TASK = "You judge whether an answer to a question is right. Reply with JSON."
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "score": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["reasoning", "score"],
    "additionalProperties": False,
}


async def try_judge(judge: Judge) -> Failure | None:
    """Return why a judge cannot be reached, or None. Its verdict is ignored; `calibrate` measures its quality."""
    result = (await judge.ask(judge_request(judge, _prompt(), case_id="trial of the judge"))).result
    return result if isinstance(result, Failure) and result.kind != "budget" else None


def _prompt() -> JudgePrompt:
    fence = Fence()
    parts = (
        fence.around("QUESTION", "What is the capital of France?"),
        fence.around("ANSWER", "Paris"),
        'Reply with JSON of this form and nothing else:\n{"reasoning": "…", "score": 0 to 10}',
    )
    return JudgePrompt(
        system=f"{_TASK}\n\n{fence.rule()}",
        text="\n\n".join(parts),
        schema=_SCHEMA,
        read=lambda reply: Verdict(value=reply["score"] / 10),
        hash=hash_prompt("trial of the judge", _TASK),
        params={"temperature": 0.1},
    )
