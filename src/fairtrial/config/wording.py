"""The texts of a condition: its prompts around the case, and its system prompt."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import yaml

from fairtrial.config.case_document import MessageEntry, Prompt, PromptFile
from fairtrial.config.document import ConditionEntry
from fairtrial.config.source import SuiteSource
from fairtrial.config.styles import find_styles, note_files
from fairtrial.core.chat import Message
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import INPUT
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.options import Problems, read
from fairtrial.core.templates import TemplateError, is_template, names_in
from fairtrial.core.trust import within
from fairtrial.core.user_functions import find_function
from fairtrial.text.yaml_text import read_yaml, reason_of

_CHATS = (".json", ".yaml", ".yml")


class Wording(NamedTuple):
    """One entry of `prompts`: a text around the case, or a chat with its system prompt."""

    prompts: tuple[str, ...] = ()
    chat: tuple[Message, ...] = ()
    system: str = ""
    function: str = ""


def prompts_of(source: SuiteSource, path: KeyPath, entry: ConditionEntry) -> tuple[str, ...]:
    """Return a condition's prompts: its own, from a file, or those of a style."""
    keys = [name for name in ("prompt", "prompt_file", "style") if getattr(entry, name) is not None]
    if len(keys) > 1:
        source.problem(path, f"{' and '.join(keys)} are mutually exclusive: set only one")
        return ()
    if entry.style is not None:
        return _style_prompts(source, (*path, "style") if path else ("suite", "styles"), entry.style)
    if entry.prompt_file is not None:
        text = read_file(source, (*path, "prompt_file"), within(source.folder, entry.prompt_file))
        if text is None:
            return ()
        texts = [text]
    else:
        texts = [entry.prompt] if isinstance(entry.prompt, str) else entry.prompt or []
    key = (*path, "prompt_file" if entry.prompt_file else "prompt")
    for text in texts:
        check_prompt(source, key, text)
    return tuple(texts)


def _style_prompts(source: SuiteSource, key: KeyPath, name: str) -> tuple[str, ...]:
    """Return the wordings of one style, built in or from a file."""
    try:
        found = find_styles([name], source.folder)
    except FairtrialError as error:
        source.problem(key, str(error))
        return ()
    if len(found) > 1:
        one = f"{name}:{next(iter(found))}"
        source.problem(key, f"{name} has several styles ({', '.join(found)}): choose one, as in {one}")
    note_files(source, [name])
    return next(iter(found.values()))


def wording_of(source: SuiteSource, path: KeyPath, prompt: Prompt) -> Wording | None:
    """Return one entry of `prompts`, checked; None if there is a problem with it."""
    if isinstance(prompt, PromptFile) and (prompt.file is None) == (prompt.python is None):
        source.problem(path, "a prompt needs exactly one of `file` and `python`")
        return None
    if isinstance(prompt, PromptFile) and prompt.python is not None:
        return _function_wording(source, (*path, "python"), prompt.python)
    if isinstance(prompt, PromptFile):
        assert prompt.file is not None
        path = (*path, "file")
        text = read_file(source, path, within(source.folder, prompt.file))
        if text is None:
            return None
        chat = Path(prompt.file).suffix.lower() in _CHATS
        prompt = _read_chat(source, path, text) if chat else text
    if isinstance(prompt, str):
        return Wording(prompts=(prompt,)) if check_prompt(source, path, prompt) else None
    return _chat_wording(source, path, prompt)


def _function_wording(source: SuiteSource, path: KeyPath, name: str) -> Wording | None:
    """Return a prompt that a function makes; report a function that is not there."""
    try:
        find_function(name, source.folder)
    except ValueError as error:
        source.problem(path, str(error))
        return None
    return Wording(function=name)


def _read_chat(source: SuiteSource, path: KeyPath, text: str) -> list[MessageEntry]:
    """Read a chat from a JSON or YAML file."""
    try:
        items = read_yaml(text)  # which reads JSON as well
    except yaml.YAMLError as error:
        source.problem(path, f"the file is neither valid JSON nor valid YAML: {reason_of(error)}")
        return []
    if not isinstance(items, list):
        source.problem(path, "a chat in a file must be a list of messages with `role` and `content`")
        return []
    problems: Problems = []
    messages = [read(MessageEntry, item, problems, (index,)) for index, item in enumerate(items)]
    for inner, message in problems:
        source.problem(path, f"message {int(inner[0]) + 1}: {'.'.join(map(str, inner[1:]))}: {message}")
    return [message for message in messages if message is not None]


def _chat_wording(source: SuiteSource, path: KeyPath, entries: list[MessageEntry]) -> Wording | None:
    """Return a chat; what its system messages say is the system prompt."""
    roles = [entry.role for entry in entries]
    first = next((number for number, role in enumerate(roles) if role != "system"), len(roles))
    reason = ""
    if not roles or roles[-1] != "user":
        reason = "a chat must end with a user's message, which is the question"
    elif "system" in roles[first:]:
        reason = "system messages must come first in a chat"
    if reason:
        source.problem(path, reason)
        return None
    texts = [entry.content for entry in entries]
    if not check_template(source, path, *texts) or not _mentions_case(source, path, texts):
        return None
    chat = tuple(Message(role=entry.role, content=entry.content) for entry in entries[first:])
    return Wording(chat=chat, system="\n\n".join(texts[:first]))


def check_prompt(source: SuiteSource, path: KeyPath, text: str) -> bool:
    """Report a prompt that is not a valid template, or that does not depend on the case."""
    return check_template(source, path, text) and _mentions_case(source, path, [text])


def check_template(source: SuiteSource, path: KeyPath, *texts: str) -> bool:
    """Report the first text that is not a valid template. Names without a value are found with the cases."""
    try:
        for text in texts:
            names_in(text)
    except TemplateError as error:
        source.problem(path, str(error))
        return False
    return True


def _mentions_case(source: SuiteSource, path: KeyPath, texts: Iterable[str]) -> bool:
    if any(names_in(text) for text in texts):
        return True
    source.problem(path, "the prompt needs {{ input }}, or the name of a column, where the case goes")
    return False


def needs_templates(texts: Iterable[str], prompts: Iterable[str]) -> bool:
    """Return whether any text has more to fill in than {{input}} in a prompt, which is filled in without Jinja2."""
    return any(map(is_template, (*texts, *(INPUT.sub("", prompt) for prompt in prompts))))


def system_text(source: SuiteSource, path: KeyPath, entry: ConditionEntry) -> str:
    """Return a condition's system prompt: from the suite, or from a file."""
    if entry.system is not None and entry.system_file is not None:
        source.problem((*path, "system_file"), "set `system` or `system_file`, not both")
    if entry.system_file is None:
        check_template(source, (*path, "system"), entry.system or "")
        return entry.system or ""
    text = read_file(source, (*path, "system_file"), within(source.folder, entry.system_file)) or ""
    check_template(source, (*path, "system_file"), text)
    return text


def read_file(source: SuiteSource, path: KeyPath, file: Path) -> str | None:
    """Return the text of a file that a suite names; None if it cannot be read, which is reported."""
    source.files.append(file)
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        source.problem(path, f"there is no file {file}")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a UTF-8 text file"
        source.problem(path, f"{file} cannot be read: {reason}")
    return None
