"""Sessions of Gemini CLI: `~/.gemini/tmp/PROJECT/chats/session-*.jsonl`, in older versions `.json`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fairtrial.core.answer import Usage
from fairtrial.foreign.chronicle import Chronicle
from fairtrial.foreign.logs import LoggedSession
from fairtrial.foreign.source import Source
from fairtrial.tracks.interchange.logs._lines import entries, is_context, split_tool, text_in, tolerant
from fairtrial.tracks.interchange.values import count_of, dict_of, list_of, name_of, seconds_of, text_of

_SESSION = {"sessionId", "projectHash"}
_SERVER = re.compile(r"^(?P<tool>.+) \((?P<server>.+) MCP Server\)$")
_ROOT = ".project_root"  # beside `chats`: the folder in which the agent worked
_MAX_ROOT = 4096


def recognises(source: Source) -> bool:
    """Return whether a file is of this format."""
    if source.suffix == ".jsonl":
        return source.first.keys() >= _SESSION
    return source.suffix == ".json" and b'"projectHash"' in source.head and source.keys >= {*_SESSION, "messages"}


def companions(source: Source) -> Iterable[Path]:
    """Return nothing: a session is one file."""
    return ()


def sessions(source: Source) -> Iterator[LoggedSession]:
    """Yield the session in a file."""
    chat = _Chat(source)
    lines = entries(source, chat.chronicle) if source.suffix == ".jsonl" else iter([dict_of(source.document)])
    for entry in lines:
        tolerant(chat.chronicle, "line", chat.take, entry)
    chat.tell()
    session = chat.chronicle.session()
    if session is not None:
        yield session


class _Chat:
    """The messages of one session: what comes again under the same id says more, and the last is right."""

    def __init__(self, source: Source) -> None:
        self.chronicle = Chronicle("gemini-cli")
        self.chronicle.id = source.name.rsplit(".", 1)[0]
        self.chronicle.folder = _root(source.path.parent.parent / _ROOT)
        self._messages: dict[str, dict[str, Any]] = {}

    def take(self, entry: dict[str, Any]) -> None:
        """Take one line: a message, a change of what came before, or the session's head."""
        changed = entry.get("$set")
        if isinstance(changed, dict):
            self._set(changed)
        elif "$rewindTo" in entry:
            self._rewind(str(entry["$rewindTo"]))
        elif isinstance(entry.get("type"), str):
            self._message(entry)
        elif "sessionId" in entry:
            self._set(entry)
        else:
            self.chronicle.skip("line without a type")

    def _set(self, changed: dict[str, Any]) -> None:
        self.chronicle.id = str(changed.get("sessionId") or self.chronicle.id)
        for message in list_of(changed.get("messages")):
            self._message(dict_of(message))

    def _message(self, message: dict[str, Any]) -> None:
        name = str(message.get("id") or len(self._messages))
        known = self._messages.setdefault(name, {})
        if message.get("type") == "message_update":
            message = {key: value for key, value in message.items() if key != "type"}
        when = known.get("timestamp")  # a session that goes on has its messages again, with the time of then
        known.update(message)
        if when is not None:
            known["timestamp"] = when

    def _rewind(self, name: str) -> None:
        names = list(self._messages)
        for later in names[names.index(name) :] if name in names else names:
            del self._messages[later]
        self.chronicle.note("The user took back what came after this.")

    def tell(self) -> None:
        """Tell the messages in their order."""
        for message in self._messages.values():
            tolerant(self.chronicle, name_of(message.get("type")), self._tell, message)

    def _tell(self, message: dict[str, Any]) -> None:
        kind, at, told = str(message.get("type")), seconds_of(message.get("timestamp")), self.chronicle
        if kind == "gemini":
            self._answer(message, at)
        elif kind == "user":
            text = text_in(_texts(message.get("content")))
            if not is_context(text):  # what the program says first; results of tools are with their calls
                told.ask(text, at)
        elif kind in ("info", "warning"):
            told.note(text_in(_texts(message.get("content"))), at)
        elif kind == "error":
            told.fail(text_in(_texts(message.get("content"))), kind, at)
        else:
            told.skip(name_of(kind))

    def _answer(self, message: dict[str, Any], at: float | None) -> None:
        told, model = self.chronicle, str(message.get("model") or "")
        told.model = model or told.model
        for thought in list_of(message.get("thoughts")):
            parts = (dict_of(thought).get("subject"), dict_of(thought).get("description"))
            told.think("\n".join(str(part) for part in parts if part), at)
        told.say(text_in(_texts(message.get("content"))), at, model=model)
        told.used(str(message.get("id")), _usage(message.get("tokens")))
        for call in list_of(message.get("toolCalls")):
            tolerant(told, "tool call", self._call, dict_of(call), at)

    def _call(self, call: dict[str, Any], at: float | None) -> None:
        told, name = self.chronicle, str(call["id"])
        shown = _SERVER.match(str(call.get("displayName") or ""))
        server, tool = (shown["server"], shown["tool"]) if shown else split_tool(str(call.get("name")))
        told.call(name, tool, call.get("args"), at, server=server)
        status = str(call.get("status"))
        done = seconds_of(call.get("timestamp"))
        if status in ("success", "error", "cancelled"):
            rejected = status == "cancelled"
            told.returned(name, _result(call.get("result")), done, error=status == "error", rejected=rejected)
        display = dict_of(call.get("resultDisplay"))
        path = display.get("filePath") or display.get("fileName")
        if status == "success" and isinstance(path, str) and "fileDiff" in display:
            new = display.get("originalContent") in (None, "")
            told.changed(path, "added" if new else "modified", done)


def _texts(content: Any) -> Any:
    """Return the parts that are texts: results of tools come back as parts of a user's message."""
    if not isinstance(content, list):
        return content
    return [part for part in content if isinstance(part, str) or "text" in dict_of(part)]


def _result(result: Any) -> str:
    texts = []
    for part in list_of(result):
        response = dict_of(dict_of(part).get("functionResponse")).get("response")
        given = dict_of(response)
        texts.append(text_of(given.get("output", given.get("error", response))))
    return "\n".join(filter(None, texts)) or (result if isinstance(result, str) else "")


def _usage(tokens: Any) -> Usage | None:
    """Return the tokens of one reply; what was thought is apart from the output, what was cached is in the input."""
    if not isinstance(tokens, dict):
        return None
    thought = count_of(tokens.get("thoughts"))
    return Usage(
        prompt=count_of(tokens.get("input")) + count_of(tokens.get("tool")),
        completion=count_of(tokens.get("output")) + thought,
        cache_read=count_of(tokens.get("cached")),
        reasoning=thought,
    )


def _root(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_ROOT).decode("utf-8", "replace").strip()
    except OSError:
        return ""
