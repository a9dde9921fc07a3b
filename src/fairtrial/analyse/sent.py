"""What an arm's target received: the messages of a trial, and the parameters, read only from the record of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from fairtrial.core.chat import Chat, Message
from fairtrial.core.experiment import Arm, Case
from fairtrial.core.templates import TemplateError
from fairtrial.store.records import RunRecord


class Exchange(NamedTuple):
    """An earlier turn of a conversation: an answer, and what the user said to it."""

    answer: str
    reply: str
    question: str = ""
    reasoning: str | None = None
    trace: dict[str, Any] | None = None  # of runs that are older than lists over all turns, and of failed trials


def transcript(arm: Arm, case: Case, repeat: int, turns: Sequence[Exchange] = (), *, ended: bool = False) -> str:
    """Return the messages of a trial for display, without the system prompt; those that come, unless it has ended."""
    try:
        chat = _chat(arm, case, repeat, turns)
    except TemplateError as error:  # the reason why this trial has no answer
        return f"({error})"
    unsaid = tuple(Message(role="user", content=text) for text in (() if ended else case.turns[len(turns) :]))
    attached = [f"[{file.name}]" for file in case.attach]
    return "\n".join([*attached, Chat(messages=chat.messages + unsaid).shown()])


def conversation(arm: Arm, case: Case, repeat: int, turns: Sequence[Exchange] = ()) -> Chat | None:
    """Return what a trial's target received before its last answer; None if a template could not be filled in."""
    try:
        return _chat(arm, case, repeat, turns)
    except TemplateError:
        return None


def _chat(arm: Arm, case: Case, repeat: int, turns: Sequence[Exchange]) -> Chat:
    chat = arm.condition.render(case, repeat)
    messages = list(chat.messages)
    for turn in turns:
        messages.append(Message(role="assistant", content=turn.answer))
        messages.append(Message(role="user", content=turn.reply))
    return Chat(system=chat.system, messages=tuple(messages))


def sent_params(record: RunRecord, arm: Arm) -> dict[str, Any] | None:
    """Return the parameters of an arm's requests; None for runs of versions that did not record them."""
    arms = msgspec.json.decode(record.context).get("arms")
    return None if arms is None else arms[arm.position]["sent"]


def refused_params(record: RunRecord, arm: Arm) -> list[str]:
    """Return the parameters that an arm's server has refused, so that they were left out from then on."""
    arms = msgspec.json.decode(record.context).get("arms") or ()
    return arms[arm.position].get("refused", []) if arm.position < len(arms) else []
