"""A trial: one repeat of one case by one arm. Its id is a hash of what is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from fairtrial.core.answer import Answer, EarlierTurn, Request
from fairtrial.core.chat import Chat, Message
from fairtrial.core.events import Event, OnLimit
from fairtrial.core.experiment import Arm, Case
from fairtrial.core.file import File
from fairtrial.core.ids import canonical_json
from fairtrial.core.judge import Judgement
from fairtrial.core.place import Place
from fairtrial.core.trace import events_of


class Trial(msgspec.Struct, frozen=True):
    """One entry of the plan. `stored` and `judgements` come from an earlier session."""

    id: str
    case: Case
    arm: Arm
    repeat: int
    params: dict[str, Any]
    stored: Answer | None = None
    judgements: tuple[Judgement, ...] = ()
    turns: tuple[EarlierTurn, ...] = ()  # of a conversation that an earlier session began
    rendered: Chat | None = None  # what templates make of the case

    @property
    def place(self) -> Place:
        """Its position in the plan."""
        return Place(self.case.position, self.arm.position, self.repeat)

    @property
    def on_limit(self) -> OnLimit:
        """What a limit is that its agent reaches; the most specific setting wins."""
        return self.case.on_limit or self.arm.on_limit or "check"

    def request(
        self,
        *,
        stream: bool,
        turns: Sequence[EarlierTurn] | None = None,
        files: Sequence[File] = (),
        skills: Sequence[File] = (),
    ) -> Request:
        """Build the request to the target, with the files of the case and skills; in a conversation, after these turns.

        Repeats are independent, so each one increments the seed. A call in a conversation has an id of its own: the
        trial's answer is that of the last call, and must not be taken for the answer of another one.
        """
        params = self.params
        if self.repeat and params.get("seed") is not None:
            params = {**params, "seed": params["seed"] + self.repeat}
        chat, happened = self._conversation(turns or ())
        return Request(
            trial_id=self.id if turns is None else f"{self.id}/{len(turns)}",
            case_id=self.case.id,
            input=chat.question,
            history=chat.history,
            happened=happened,
            files=tuple(files),
            vars=self.arm.condition.variables(self.case),
            session=None if turns is None else _session(turns),
            works_in=self.arm.workspace_of(self.case),
            changes=turns[-1].answer.changes if turns else None,
            system=chat.system,
            mcp=self.arm.condition.mcp,
            skills=tuple(skills),
            params=params,
            defaulted=self._defaulted(),
            repeat=self.repeat,
            stream=stream,
            on_limit=self.on_limit,
        )

    def _defaulted(self) -> tuple[str, ...]:
        own = self.case.params
        return tuple(name for name in self.arm.defaulted if name not in own) if own else self.arm.defaulted

    def chat(self, turns: Sequence[EarlierTurn] = ()) -> Chat:
        """Return what the target receives after this many turns."""
        return self._conversation(turns)[0]

    def _conversation(self, turns: Sequence[EarlierTurn]) -> tuple[Chat, dict[int, tuple[Event, ...]]]:
        """Return the chat after these turns, and what happened in them by the place of each one's answer in it."""
        chat = self.rendered or self.arm.condition.render(self.case, self.repeat)
        messages, happened = list(chat.messages), {}
        for number, turn in enumerate(turns):
            question = turn.reply if turn.reply is not None else self.case.turns[number]
            if question:  # otherwise its answer was the last one
                events = events_of(turn.answer.trace, number + 1)
                if events:
                    happened[len(messages)] = events
                messages.append(Message(role="assistant", content=turn.answer.text))
                messages.append(Message(role="user", content=question))
        return Chat(system=chat.system, messages=tuple(messages)) if turns else chat, happened


def _session(turns: Sequence[EarlierTurn]) -> str:
    """Return the session in which an agent gave the last of these answers; empty if there is none."""
    trace = (turns[-1].answer.trace or {}) if turns else {}
    return str(trace.get("session_id") or "")


class TrialIds:
    """Makes the ids of one arm's trials; what they have in common is hashed only once."""

    def __init__(self, arm: Arm) -> None:
        self._arm = arm
        shared = canonical_json([arm.name, arm.target.identity(), arm.condition.identity()])
        self._shared = hashlib.blake2b(shared, digest_size=10)

    def make(self, case: Case, repeat: int, params: dict[str, Any], rendered: Chat | str | None = None) -> str:
        """Return the id of one trial: 20 hexadecimal digits. `rendered` is what templates make of the case."""
        digest = self._shared.copy()
        digest.update(canonical_json([case.id, case.input, params, repeat]))
        if rendered is not None:
            digest.update(canonical_json(rendered))
        if case.turns or case.attach:
            digest.update(canonical_json([case.turns, [file.sha256 for file in case.attach]]))
        workspace = self._arm.workspace_of(case)
        if workspace is not None:
            digest.update(canonical_json(workspace.identity()))
        return digest.hexdigest()
