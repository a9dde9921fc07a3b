"""The prompts of a configuration: texts and chats, by name."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fairtrial.core.templates import TemplateError, names_in
from fairtrial.foreign.suites import read_text
from fairtrial.tables.files import is_file
from fairtrial.tracks.interchange.importers._promptfoo.conversion import Conversion
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import converted, to_jinja
from fairtrial.tracks.interchange.importers._promptfoo.yaml12 import parse

CONVERSATION = "_conversation"
JAVASCRIPT = "\ue003"  # before the text of a function of a configuration in JavaScript
_TEXTS = (".txt", ".md", ".j2", ".njk", "")
_FUNCTIONS = (".py", ".js", ".ts", ".mjs", ".cjs")
_FUNCTION = re.compile(r"(.+(\.py|\.[mc]?[jt]s))(?::([\w.]+))?")
_SEPARATOR = re.compile(r"^---[^\S\n]*$", re.MULTILINE)
_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
}
# The loop over earlier turns, with the commas that JSON needs around it.
_LOOP = re.compile(r"\{%-?\s*for\s+\w+\s+in\s+_conversation\s*-?%\}.*?\{%-?\s*endfor\s*-?%\}\s*,?", re.DOTALL)
_BARE = re.compile(r'(?<!["\w])\{\{-?\s*([\w.]+)\s*\|\s*(?:dump|tojson)(?:\s*\|\s*safe)?\s*-?\}\}(?!["\w])')
_MAX_NAME = 60


class Prompt(NamedTuple):
    """A wording: a template, or a chat of templates."""

    text: str = ""
    chat: tuple[tuple[str, str], ...] = ()
    conversation: bool = False  # whether earlier turns come before it
    attached: tuple[str, ...] = ()  # variables that hold images
    function: str = ""  # instead of a text: what makes it
    source: str = ""  # as the configuration writes it
    config: Any = None  # settings of the provider that come with it
    id: str = ""  # of a prompt that has one next to its label

    @property
    def texts(self) -> list[str]:
        """All templates in it."""
        return [content for _, content in self.chat] if self.chat else [self.text]

    @property
    def names(self) -> set[str]:
        """The names that it uses."""
        return {name for text in self.texts for name in names_in(text)}

    def changed(self, change: Any) -> Prompt:
        """Return it with every template changed by a function."""
        chat = tuple((role, change(content)) for role, content in self.chat)
        return self._replace(text=change(self.text), chat=chat)


class Prompts:
    """Reads the `prompts` of a configuration."""

    def __init__(self, at: Conversion, filters: dict[str, Path]) -> None:  # in JavaScript, which templates use
        self._folder, self._notes, self._environment, self._code = at.folder, at.notes, at.environment, at.code
        self._filters = filters
        self._uses = re.compile(rf"\|\s*(?:{'|'.join(map(re.escape, filters))})\b") if filters else None

    def read(self, entries: Any) -> dict[str, Prompt]:
        """Return the prompts by name."""
        if isinstance(entries, dict):  # the older form: {file: label}
            entries = [{"id": key, "label": label} for key, label in entries.items()]
        found = [
            (*pair, entry if isinstance(entry, dict) else {})
            for entry in (entries if isinstance(entries, list) else [entries])
            for pair in self._entry(entry)
        ]
        named: dict[str, Prompt] = {}
        for number, (label, text, entry) in enumerate(found, 1):
            name = _short(label) or f"prompt-{number}"
            prompt = text if isinstance(text, Prompt) else self._prompt(name, text)
            if prompt is not None:
                source = label if isinstance(text, Prompt) else text
                # A function is told its settings itself.
                config, own = None if prompt.function else entry.get("config"), str(entry.get("id") or "")
                kept = prompt._replace(source=source, config=config, id=own)
                named[name if name not in named else f"{name}-{number}"] = kept
        return named

    def _entry(self, entry: Any) -> list[tuple[str, str | Prompt]]:
        """Return (label, text) for every prompt of an entry."""
        if isinstance(entry, dict):
            text, label = str(entry.get("raw") or entry.get("id") or ""), str(entry.get("label") or "")
            label = label or str(entry.get("id") or "" if entry.get("raw") else "")
            named = f"`{{}}` of prompt {label or text[:_MAX_NAME]!r}"
            self._notes.lost_keys(entry, ("raw", "id", "label", "config"), named, "remove it, or set it by hand")
        else:
            text, label = str(entry), ""
        if not text.strip():
            return []
        if text.startswith(("exec:", JAVASCRIPT)):
            return self._program(text, label, entry)
        function = _FUNCTION.fullmatch(text.removeprefix(PREFIX))
        if function and (text.startswith(PREFIX) or " " not in text):
            return self._function(function[1], function[3] or "", label, entry)
        if not self._is_file(text):
            return [(label, text)]
        paths: list[Path] = []
        with self._notes.missing(f"prompt {text}"):
            paths = self._folder.find(text)
        return [(f"{label}-{i}" if label and i > 1 else label or name, body)
                for i, (name, body) in enumerate(self._in_files(paths), 1)]  # fmt: skip

    def _function(self, name: str, function: str, label: str, entry: Any) -> list[tuple[str, str | Prompt]]:
        config = entry.get("config") if isinstance(entry, dict) else None
        with self._notes.missing(f"prompt {name}"):
            paths = self._folder.find(name)
            self._notes.differs("a function that makes a prompt gets the variables, and not which provider it is for")
            shown = f"{Path(name).name}:{function}" if function else Path(name).name
            return [(label or shown, Prompt(function=self._code.prompt(path, function, config))) for path in paths]
        return []

    def _program(self, text: str, label: str, entry: Any) -> list[tuple[str, str | Prompt]]:
        """Return the prompt that a program prints, or that a function in JavaScript returns."""
        if text.startswith(JAVASCRIPT):
            return [(label, Prompt(function=self._code.node_prompt(text.removeprefix(JAVASCRIPT))))]
        program, command = self._folder.command(text.removeprefix("exec:"))
        if not command:
            self._notes.lost(f"prompt {text}", "its command cannot be read; write what it prints as a template")
            return []
        config = entry.get("config") if isinstance(entry, dict) else None
        self._notes.differs("a program that prints a prompt gets the variables, and not which provider it is for")
        return [(label or program, Prompt(function=self._code.printed_prompt(command, config)))]

    def _is_file(self, text: str) -> bool:
        if text.startswith(PREFIX):
            return True
        short = len(text) < 200 and "\n" not in text and "{{" not in text
        return short and (
            is_file(self._folder.path / text)
            or (Path(text).suffix in (".txt", ".json", *_FUNCTIONS) and " " not in text)
        )

    def _in_files(self, paths: list[Path]) -> list[tuple[str, str | Prompt]]:
        found: list[tuple[str, str | Prompt]] = []
        for path in paths:
            if path.suffix in _FUNCTIONS:
                found += self._function(str(path.relative_to(self._folder.path)), "", "", None)
            elif path.suffix in (".json", ".yaml", ".yml"):
                found.append((path.name, read_text(path)))
            elif path.suffix == ".jsonl":
                found += [
                    (f"{path.name}-{i}", line) for i, line in enumerate(read_text(path).splitlines(), 1) if line.strip()
                ]
            elif path.suffix == ".csv":
                rows = list(csv.DictReader(io.StringIO(read_text(path))))
                found += [
                    (row.get("label") or f"{path.name}-{i}", row.get("prompt") or "") for i, row in enumerate(rows, 1)
                ]
            elif path.suffix in _TEXTS:
                parts = [part.strip() for part in _SEPARATOR.split(read_text(path)) if part.strip()]
                several = len(parts) > 1
                found += [(f"{path.name}-{i}" if several else path.name, part) for i, part in enumerate(parts, 1)]
            else:
                self._notes.lost(
                    f"prompt {path.name}", "not a text file; write the prompt as a template under `prompts`"
                )
        return found

    def _prompt(self, name: str, text: str) -> Prompt | None:
        conversation = CONVERSATION in text
        body = _LOOP.sub("", text) if conversation else text
        messages = _messages(body)
        if self._uses and self._uses.search(body):
            made = [{**message, "content": to_jinja(str(message.get("content")))} for message in messages or []]
            return Prompt(function=self._code.computed_prompt(made or to_jinja(body), {}, self._filters))
        try:
            if messages is None:
                prompt = Prompt(text=converted(body, self._environment), conversation=conversation)
            else:
                prompt = self._chat(messages)._replace(conversation=conversation)
            names = prompt.names
        except _NoChatError as error:
            self._notes.lost(f"prompt {name}", str(error))
            return None
        except TemplateError as error:
            self._notes.lost(f"prompt {name}", f"{error}; rewrite it with what Jinja2 offers")
            return None
        if CONVERSATION in names or "env" in names:
            odd = CONVERSATION if CONVERSATION in names else "env"
            self._notes.lost(f"prompt {name}", f"`{odd}` is inside a statement; write the prompt without it")
            return None
        return prompt

    def _chat(self, messages: list[Any]) -> Prompt:
        chat: list[tuple[str, str]] = []
        attached: list[str] = []
        for message in messages:
            role = _ROLES.get(str(message.get("role"))) if isinstance(message, dict) else None
            if role is None:
                raise _NoChatError("a chat here has system, user and assistant messages only; take the others out")
            content = self._content(message.get("content"), attached)
            chat.append((role, converted(content, self._environment)))
        first = next((i for i, (role, _) in enumerate(chat) if role != "system"), len(chat))
        if any(role == "system" for role, _ in chat[first:]):
            raise _NoChatError("system messages must come first; move them to the beginning")
        if len(chat) == first:  # a system prompt alone: promptfoo sends it as the only message
            chat = [("user", content) for _, content in chat]
        if chat[-1][0] != "user":
            raise _NoChatError("a chat must end with a user's message; an answer begun for the model is not sent")
        return Prompt(chat=tuple(chat), attached=tuple(attached))

    def _content(self, content: Any, attached: list[str]) -> str:
        """Return a message's text; images that are variables become attachments of the cases."""
        if isinstance(content, str):
            return content
        texts = []
        for part in content if isinstance(content, list) else [content]:
            if (text := _text_of(part)) is not None:
                texts.append(text)
            elif (document := _document(part)) is not None:
                self._notes.differs("documents in a message are sent as text; citations are not asked for")
                texts.append(document)
            elif name := re.search(r"\{\{\s*(\w+)\s*\}\}", json.dumps(part)):
                attached.append(name[1])
            else:
                raise _NoChatError("a part of a message is neither text nor a variable with a file; use `attach`")
        return "\n".join(texts)


def _text_of(part: Any) -> str | None:
    """Return the text of a part of a message, which Adaline keeps under another name."""
    if not isinstance(part, dict):
        return None
    text = part.get("value") if part.get("modality") == "text" else part.get("text")
    return text if isinstance(text, str) else None


def _document(part: Any) -> str | None:
    """Return the text of a document that is part of a message, with its title."""
    source = part.get("source") if isinstance(part, dict) and part.get("type") == "document" else None
    if not isinstance(source, dict) or source.get("type") != "text" or not isinstance(source.get("data"), str):
        return None
    title = str(part.get("title") or "document")
    return f"<{title}>\n{source['data']}\n</{title}>"


class _NoChatError(Exception):
    """A chat that cannot be carried over; the message says what to do."""


def _short(label: str) -> str:
    """Return a label as the name of a condition: what is too long for one, or has several lines, is none."""
    line = " ".join(label.split())
    return line if len(line) <= _MAX_NAME else f"{line[: _MAX_NAME - 1]}…"


def _messages(text: str) -> list[Any] | None:
    """Return the messages of a chat written as JSON or YAML; None if the text is a plain prompt."""
    stripped = _BARE.sub(r'"{{ \1 }}"', text.strip())
    if stripped.startswith("["):
        try:
            return _as_chat(json.loads(re.sub(r",(\s*\])", r"\1", stripped), strict=False))
        except ValueError:
            return _as_chat(_yaml(stripped))
    if stripped.startswith("{") and '"messages"' in stripped:
        loaded = _yaml(stripped)
        return _as_chat(loaded.get("messages")) if isinstance(loaded, dict) else None
    return _as_chat(_yaml(stripped)) if re.match(r"-\s+(role|content)\s*:", stripped) else None


def _yaml(text: str) -> Any:
    try:
        return parse(text)
    except yaml.YAMLError:
        return None


def _as_chat(value: Any) -> list[Any] | None:
    chat = isinstance(value, list) and value and all(isinstance(item, dict) and "role" in item for item in value)
    return value if chat else None


def chat_of(value: Any) -> list[Any] | None:
    """Return a variable's value as the messages of a chat; None if it is something else."""
    return _messages(value) if isinstance(value, str) else _as_chat(value)


# fmt: skip
