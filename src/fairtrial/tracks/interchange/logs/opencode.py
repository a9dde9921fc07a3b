"""Sessions of opencode, as `opencode export ID` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fairtrial.core.answer import Usage
from fairtrial.foreign.chronicle import Chronicle
from fairtrial.foreign.logs import LoggedSession
from fairtrial.foreign.source import Source
from fairtrial.tracks.interchange.logs._lines import tolerant
from fairtrial.tracks.interchange.values import (
    count_of,
    dict_of,
    failure_of,
    list_of,
    name_of,
    number_of,
    seconds_of,
    text_of,
)

_SILENT = frozenset({"step-start", "step-finish", "snapshot", "file", "agent"})
_REJECTED = ("The user rejected permission", "The user has specified a rule which prevents")
_HOW = {"added": "added", "deleted": "removed", "modified": "modified"}
_FINISHES = {"stop": "stop", "length": "length", "content-filter": "content_filter"}


def recognises(source: Source) -> bool:
    """Return whether a file is of this format."""
    return source.suffix == ".json" and b'"sessionID"' in source.head and source.keys >= {"info", "messages"}


def companions(source: Source) -> Iterable[Path]:
    """Return nothing: a session is one file."""
    return ()


def sessions(source: Source) -> Iterator[LoggedSession]:
    """Yield the session in a file."""
    told, document = _Exported(), dict_of(source.document)
    tolerant(told.chronicle, "session", told.head, dict_of(document.get("info")))
    for message in list_of(document.get("messages")):
        tolerant(told.chronicle, "message", told.take, dict_of(message))
    session = told.chronicle.session()
    if session is not None:
        yield session


class _Exported:
    def __init__(self) -> None:
        self.chronicle = Chronicle("opencode")
        self._changes: dict[str, str] = {}  # how files were changed, where a turn sums it up

    def head(self, info: dict[str, Any]) -> None:
        told = self.chronicle
        told.id, told.version = str(info.get("id") or ""), str(info.get("version") or "")
        told.folder, told.cost_usd = str(info.get("directory") or ""), number_of(info.get("cost"))
        told.usage = _usage(info.get("tokens"))

    def take(self, message: dict[str, Any]) -> None:
        """Take one message with its parts."""
        info = dict_of(message.get("info"))
        role, model = str(info.get("role")), str(info.get("modelID") or "")
        at = seconds_of(dict_of(info.get("time")).get("created"))
        parts = [dict_of(part) for part in list_of(message.get("parts"))]
        if role == "user":
            self._user(info, parts, at)
            return
        self.chronicle.model = f"{info['providerID']}/{model}" if info.get("providerID") else model
        self.chronicle.finish_reason = _FINISHES.get(str(info.get("finish")), self.chronicle.finish_reason)
        self.chronicle.used(str(info.get("id")), _usage(info.get("tokens")))
        for part in parts:
            tolerant(self.chronicle, f"part {name_of(part.get('type'))}", self._part, part, at, model)
        self._failed(info.get("error"), at)

    def _user(self, info: dict[str, Any], parts: list[dict[str, Any]], at: float | None) -> None:
        for diff in list_of(dict_of(info.get("summary")).get("diffs")):
            one = dict_of(diff)
            self._changes[str(one.get("file"))] = _HOW.get(str(one.get("status")), "modified")
        texts = [str(part.get("text")) for part in parts if part.get("type") == "text" and not part.get("synthetic")]
        self.chronicle.ask("\n".join(texts), at)
        if any(part.get("type") == "compaction" for part in parts):
            self.chronicle.note("The agent shortened its context.", at)

    def _failed(self, error: Any, at: float | None) -> None:
        """Tell why an answer ended early; a later one takes its place."""
        told = self.chronicle
        if not isinstance(error, dict):
            told.failure = None
            return
        name = str(error.get("name") or "error")
        text = text_of(dict_of(error.get("data")).get("message")) or name
        if name == "MessageAbortedError":
            told.note(f"The turn was ended: {text}", at)
            return
        told.fail(text, name, at)
        told.failure = failure_of(text)

    def _part(self, part: dict[str, Any], at: float | None, model: str) -> None:
        told, kind = self.chronicle, str(part.get("type"))
        when = seconds_of(dict_of(part.get("time")).get("start")) or at
        if kind == "text":
            told.say(str(part.get("text") or ""), when, model=model)
        elif kind == "reasoning":
            told.think(str(part.get("text") or ""), when)
        elif kind == "tool":
            self._call(part, dict_of(part.get("state")), at)
        elif kind == "patch":
            for path in list_of(part.get("files")):
                self._changed(str(path), at)
        elif kind == "retry":
            told.fail(text_of(dict_of(dict_of(part.get("error")).get("data")).get("message")), kind, when)
        elif kind == "compaction":
            told.note("The agent shortened its context.", when)
        elif kind not in _SILENT:
            told.skip(f"part {name_of(kind)}")

    def _call(self, part: dict[str, Any], state: dict[str, Any], at: float | None) -> None:
        told, name = self.chronicle, str(part["callID"])
        times, status = dict_of(state.get("time")), state.get("status")
        began, ended = seconds_of(times.get("start")) or at, seconds_of(times.get("end"))
        told.call(name, str(part.get("tool")), state.get("input"), began)
        if status in ("completed", "error"):
            text = text_of(state.get("error" if status == "error" else "output"))
            told.returned(name, text, ended, error=status == "error", rejected=text.startswith(_REJECTED))

    def _changed(self, path: str, at: float | None) -> None:
        relative = path.removeprefix(f"{self.chronicle.folder}/")
        self.chronicle.changed(relative, self._changes.get(relative, "modified"), at)


def _usage(tokens: Any) -> Usage | None:
    """Return tokens; what was cached and what was thought are apart from the rest."""
    if not isinstance(tokens, dict):
        return None
    cache, thought = dict_of(tokens.get("cache")), count_of(tokens.get("reasoning"))
    read, written = count_of(cache.get("read")), count_of(cache.get("write"))
    return Usage(
        prompt=count_of(tokens.get("input")) + read + written,
        completion=count_of(tokens.get("output")) + thought,
        cache_read=read,
        cache_write=written,
        reasoning=thought,
    )
