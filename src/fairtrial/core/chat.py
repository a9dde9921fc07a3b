"""What a target receives in one trial: a system prompt and a list of messages that ends with a question."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from fairtrial.core.templates import TemplateError
from fairtrial.core.types_in_threads import look_into
from fairtrial.core.user_functions import load_function

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


def made_by_function(name: str, folder: Path, values: Mapping[str, Any], system: str) -> Chat:
    """Return the chat that a function makes: of a text, or of messages with `role` and `content`.

    Raises TemplateError if there is no such function, if it fails, or if it returns anything else.
    """
    try:
        made = load_function(name, folder)(dict(values))
    except (Exception, SystemExit) as error:  # user code: anything it raises means that there is no prompt
        raise TemplateError(f"{name} raised {type(error).__name__}: {error}") from None
    if isinstance(made, str) and made.strip():
        return single(made, system)
    try:
        messages = msgspec.convert(made, list[Message])
    except msgspec.ValidationError:
        raise TemplateError(f"{name} must return a text, or a list of messages with `role` and `content`") from None
    return _chat(name, messages, system)


def _chat(name: str, messages: list[Message], system: str) -> Chat:
    first = next((number for number, message in enumerate(messages) if message.role != "system"), len(messages))
    if not messages or messages[-1].role != "user" or any(message.role == "system" for message in messages[first:]):
        raise TemplateError(f"{name} must return system messages first, and a user's message last")
    texts = [system, *(message.content for message in messages[:first])]
    return Chat(system="\n\n".join(text for text in texts if text), messages=tuple(messages[first:]))


look_into(Message)
