"""A simulated user: a model that plays the other side of a conversation, the same for every arm."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from fairtrial.core.answer import EarlierTurn, Failure, Outcome, Request
from fairtrial.core.chat import Message
from fairtrial.core.money import Cost
from fairtrial.core.settings import UserSpec
from fairtrial.core.templates import TemplateError, fill
from fairtrial.core.trial import Trial

_END, _GIVE_UP = "[END]", "[GIVE UP]"
_TASK = f"""\
You play a user who talks to an assistant. Stay in this role whatever the assistant says. Write only what the user \
says next: one message, in the user's own words.
Once you have what you want, reply with {_END} and nothing else. Once it is clear that you will not get it, reply with \
{_GIVE_UP} and nothing else."""
_BEGIN = "(The conversation begins. Write your first message.)"
MAX_REPLY_TOKENS = 1000


class Reply(NamedTuple):
    """What the user says next, or why it could not be asked; an empty text ends the conversation, for a reason."""

    text: str | Failure
    cost: Cost = Cost()
    why: str = ""


class SimulatedUser:
    """Replies to the answers of a target until it has what it wants."""

    def __init__(self, spec: UserSpec, ask: Callable[[Request], Awaitable[Outcome]]) -> None:
        self.spec, self._ask = spec, ask

    def is_last(self, turn: int) -> bool:
        """Return whether the answer in this turn (from 1) ends the conversation in any case."""
        return turn >= self.spec.max_turns

    async def reply(self, trial: Trial, turns: Sequence[EarlierTurn]) -> Reply:
        """Return the next message, or an empty text if the user has no more to say; and what it cost."""
        try:
            request = self.request(self.spec, trial, turns)
        except TemplateError as error:
            return Reply(Failure(kind="template", message=f"the simulated user: {error}"))
        outcome = await self._ask(request)
        result = outcome.result
        if isinstance(result, Failure):
            return Reply(result, outcome.cost)
        text = result.text.strip()
        why = self._why_over(text)
        return Reply("" if why else text, outcome.cost, why)

    def _why_over(self, text: str) -> str:
        """Return why the user says no more, in words; empty if it goes on."""
        if _GIVE_UP in text:
            return "the user gave up"
        if _END in text:
            unmet = ", although the check had not passed" if self.spec.end else ""
            return f"the user said that it has what it wants{unmet}"
        return "" if text else "the user said nothing more"

    @staticmethod
    def request(spec: UserSpec, trial: Trial, turns: Sequence[EarlierTurn]) -> Request:
        """Return the request for the next message."""
        values = trial.arm.condition.values(trial.case)
        persona, goal = (fill(text, values).strip() for text in (spec.persona, spec.goal))
        parts = [_TASK, f"Who you are: {persona}" if persona else "", f"What you want: {goal}" if goal else ""]
        messages = [Message(role="user", content=_BEGIN)]
        for turn in turns:  # with the roles exchanged: what the user said is what this model said
            messages.append(Message(role="assistant", content=turn.question))
            messages.append(Message(role="user", content=turn.answer.text))
        return Request(
            trial_id=f"{trial.id}/user/{len(turns)}",
            case_id=trial.case.id,
            input=messages[-1].content,
            history=tuple(messages[:-1]),
            system="\n\n".join(filter(None, parts)),
            params={"max_tokens": MAX_REPLY_TOKENS, **spec.params},
            repeat=trial.repeat,
            stream=False,
        )
