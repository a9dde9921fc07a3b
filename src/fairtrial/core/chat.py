"""What a target receives in one trial: a system prompt and a list of messages that ends with a question."""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant"]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a chat."""

    role: Role
    content: str


class Chat(msgspec.Struct, frozen=True, kw_only=True):
    """A system prompt, and messages of which the last one is the question."""

    system: str = ""
    messages: tuple[Message, ...]

    @property
    def question(self) -> str:
        """The last message."""
        return self.messages[-1].content

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages before the question: examples, and earlier turns."""
        return self.messages[:-1]

    def as_dicts(self) -> list[dict[str, str]]:
        """Return the whole chat as the APIs of models have it."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, *({"role": message.role, "content": message.content} for message in self.messages)]

    def shown(self) -> str:
        """Return the chat without its system prompt, for display."""
        if len(self.messages) == 1:
            return self.question
        return "\n\n".join(f"{message.role}: {message.content}" for message in self.messages)


def single(question: str, system: str = "") -> Chat:
    """Return a chat that consists of one question."""
    return Chat(system=system, messages=(Message(role="user", content=question),))
