"""Prompts that a function of the user's makes of the variables of a case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.chat import Chat, Message, single
from fairtrial.core.templates import TemplateError
from fairtrial.core.user_functions import load_function


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
