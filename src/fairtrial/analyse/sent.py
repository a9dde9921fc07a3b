"""What an arm's target was told: the messages of a trial, and the parameters, read only from the record of the run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from fairtrial.core.chat import Chat, Message
from fairtrial.core.experiment import Arm, Case
from fairtrial.core.templates import TemplateError
from fairtrial.store.store import RunRecord


def told(arm: Arm, case: Case, repeat: int, answers: Sequence[str] = ()) -> str:
    """Return the messages of a trial for people to read, without the system prompt.

    `answers` are those to the earlier turns of a conversation.
    """
    try:
        messages = list(arm.condition.render(case, repeat).messages)
    except TemplateError as error:  # the reason why this trial has no answer
        return f"({error})"
    for question, answer in zip_longest(case.turns, answers):
        messages += [Message(role="assistant", content=answer)] if answer is not None else []
        messages += [Message(role="user", content=question)] if question is not None else []
    attached = [f"[{file.name}]" for file in case.attach]
    return "\n".join([*attached, Chat(messages=tuple(messages)).shown()])


def sent_params(record: RunRecord, arm: Arm) -> dict[str, Any] | None:
    """Return the parameters of an arm's requests; None for runs of versions that did not record them."""
    arms = msgspec.json.decode(record.context).get("arms")
    return None if arms is None else arms[arm.position]["sent"]


def sent_text(sent: dict[str, Any] | None, arm: Arm) -> str:
    """Describe the parameters sent. For old runs only the configured ones are known, not those that were sent."""
    if sent is not None:
        return _listed(sent) or "none sent"
    return f"not recorded; configured: {_listed(arm.params) or 'none'}"


def _listed(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in params.items())
