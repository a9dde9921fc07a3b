"""One turn of a conversation, as a scorer sees it: what was asked and answered in it, and what happened meanwhile."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.core.answer import Answer, Usage
from fairtrial.core.expected import Expected
from fairtrial.core.experiment import Case
from fairtrial.core.score import Earlier, ScoreContext
from fairtrial.core.trace import trace_of_turn

_MESSAGES = 2  # of every turn after the first: an answer, and the next question


def turns_in(context: ScoreContext) -> int:
    """Return how many turns a conversation had; what was asked once is a conversation of one turn."""
    return max(1, len(context.turns))


def case_of_turn(case: Case, turn: int, expected: Expected) -> Case:
    """Return the case that one turn is: its question, and what is expected of its answer."""
    question = case.input if turn == 1 or turn > len(case.turns) + 1 else case.turns[turn - 2]
    metadata = {name: value for name, value in (case.metadata or {}).items() if name != "tools"}
    return msgspec.structs.replace(case, input=question, turns=(), expected=expected, metadata=metadata or None)


def turn_of(context: ScoreContext, turn: int, expected: Expected) -> ScoreContext:
    """Return what a scorer of one turn sees: the messages up to its answer, and of the trace only its part."""
    last = turns_in(context)
    case = case_of_turn(context.case, turn, expected)
    own: dict[str, Any] = {"case": case, "part": f"turn {turn}"}
    if last == 1:
        return msgspec.structs.replace(context, **own)
    exchanged = context.turns[turn - 1]
    answer, workspace = _made(context, turn)
    messages = context.messages[: len(context.messages) - _MESSAGES * (last - turn)]
    return msgspec.structs.replace(
        context,
        **own,
        response=exchanged.answer or "",
        original=None,
        answer=answer,
        messages=messages,
        conversation=turn > 1,
        turns=(exchanged,),
        earlier=(),
        finish_reason=answer.finish_reason if answer else None,
        workspace=workspace,
    )


def _made(context: ScoreContext, turn: int) -> Earlier:
    """Return the answer of one turn with its own trace, tokens and time, and the workspace as of then."""
    whole = context.answer or Answer(text=context.response)
    if turn < turns_in(context):
        earlier = context.earlier[turn - 1] if turn <= len(context.earlier) else Earlier(Answer(text=""))
        answer, workspace = earlier
    else:
        answer, workspace = _last(whole, [each.answer for each in context.earlier]), context.workspace
    # What each turn cost is not stored apart from the others.
    return Earlier(msgspec.structs.replace(answer, trace=trace_of_turn(whole.trace, turn), cost_usd=None), workspace)


def _last(whole: Answer, earlier: list[Answer]) -> Answer:
    """Return the last answer with its own tokens and time: the trial has those of all turns."""
    usages, times = [each.usage for each in earlier], [each.latency_ms for each in earlier]
    usage = whole.usage
    if usage is not None:
        known = [each for each in usages if each is not None]
        usage = _less(usage, sum(known, Usage())) if len(known) == len(usages) else None
    latency = whole.latency_ms
    if latency is not None:
        latency = None if None in times else max(0.0, latency - sum(ms for ms in times if ms is not None))
    return msgspec.structs.replace(whole, usage=usage, latency_ms=latency)


def _less(one: Usage, other: Usage) -> Usage:
    pairs = zip(msgspec.structs.astuple(one), msgspec.structs.astuple(other), strict=True)
    return Usage(**dict(zip(one.__struct_fields__, (max(0, a - b) for a, b in pairs), strict=True)))
