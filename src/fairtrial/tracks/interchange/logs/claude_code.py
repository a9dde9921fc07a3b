"""Sessions of Claude Code: `~/.claude/projects/FOLDER/ID.jsonl`, and those of subagents in `ID/subagents/`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fairtrial.core.answer import Usage
from fairtrial.foreign.chronicle import Chronicle
from fairtrial.foreign.logs import LoggedSession
from fairtrial.foreign.source import Source
from fairtrial.tracks.interchange.logs._lines import entries, split_tool, text_in, tolerant
from fairtrial.tracks.interchange.values import (
    count_of,
    dict_of,
    failure_of,
    list_of,
    name_of,
    number_of,
    seconds_of,
)

_SUBAGENTS = "subagents"
_MARKS = (b'"sessionId"', b'"parentUuid"', b'"isSidechain"')
_SILENT = frozenset({
    "attachment", "agent-name", "agent-color", "api-request", "api-request-blob", "api-request-shape", "atis-latch",
    "custom-title", "ai-title", "file-history-snapshot", "last-prompt", "mode", "permission-mode", "pr-link",
    "progress", "queue-operation", "summary", "tag", "tools-used", "worktree-state",
})  # fmt: skip
_SYSTEM = frozenset({
    "turn_duration", "local_command", "informational", "stop_hook_summary", "away_summary", "bridge_status",
})  # fmt: skip
_COMPACTED = "The agent shortened its context."
_INTERRUPTED = "[Request interrupted by user"
_NO_PROMPT = ("<local-command-", "<command-name>", "<command-message>", "<system-reminder>", "Caveat: The messages ")
_REFUSALS = ("The user doesn't want to", "Permission to use", "Claude requested permissions to")
_HOW = {"create": "added", "update": "modified", "edit": "modified", "delete": "removed"}


def recognises(source: Source) -> bool:
    """Return whether a file is of this format."""
    return source.suffix == ".jsonl" and sum(mark in source.head for mark in _MARKS) >= 2


def companions(source: Source) -> Iterable[Path]:
    """Return the files of a session's subagents."""
    folder = source.path.parent / source.name.removesuffix(".jsonl") / _SUBAGENTS
    return sorted(path for path in folder.glob("*.json*") if path.is_file())


def sessions(source: Source) -> Iterator[LoggedSession]:
    """Yield the session in a file, with what its subagents did where they were called."""
    told = _Session(source)
    for entry in entries(source, told.chronicle):
        tolerant(told.chronicle, str(entry.get("type")), told.take, entry)
    told.finish()
    session = told.chronicle.session()
    if session is not None:
        yield session


class _Session:
    """The lines of one session."""

    def __init__(self, source: Source) -> None:
        self.chronicle = Chronicle("claude-code")
        self.chronicle.id = source.name.removesuffix(".jsonl")
        self._alone = source.path.parent.name == _SUBAGENTS  # a subagent's file that was named by itself
        self._seen: set[str] = set()
        self._parts: dict[str, Source] = {}  # files of subagents by their names
        self._starters: dict[str, str] = {}  # calls by the names of the subagents that they started
        for path in () if self._alone else companions(source):
            self._know(path)

    def _know(self, path: Path) -> None:
        name = path.name.split(".")[0].removeprefix("agent-")
        if path.suffix == ".jsonl":
            self._parts[name] = Source(path)
        elif path.name.endswith(".meta.json"):
            tolerant(self.chronicle, "description of a subagent", self._described, name, Source(path))

    def _described(self, name: str, source: Source) -> None:
        told = dict_of(source.document)
        call = told.get("toolUseId")
        if isinstance(call, str):
            self._starters[name] = call
            self.chronicle.delegate(call, name_of(told.get("agentType") or name))

    def take(self, entry: dict[str, Any]) -> None:
        """Take one line."""
        chronicle, kind = self.chronicle, str(entry.get("type"))
        identity = entry.get("uuid")
        if isinstance(identity, str):
            if identity in self._seen:
                return  # a session that goes on, or was compacted, repeats its lines
            self._seen.add(identity)
        self._where(entry)
        within = self._within(entry)
        at = seconds_of(entry.get("timestamp"))
        if kind == "assistant":
            self._answer(entry, dict_of(entry.get("message")), at, within)
        elif kind == "user":
            self._user(entry, dict_of(entry.get("message")), at, within)
        elif kind == "system":
            self._system(entry, at, within)
        elif kind == "cost-state":
            chronicle.cost_usd = number_of(entry.get("totalCostUSD"))
        elif kind not in _SILENT:
            chronicle.skip(name_of(kind))

    def _where(self, entry: dict[str, Any]) -> None:
        told = self.chronicle
        told.folder = told.folder or str(entry.get("cwd") or "")
        told.branch = told.branch or str(entry.get("gitBranch") or "")
        told.version = str(entry.get("version") or told.version)

    def _within(self, entry: dict[str, Any]) -> str:
        if self._alone or not entry.get("isSidechain"):
            return ""
        agent = str(entry.get("agentId") or "")
        return self._starters.get(agent) or str(entry.get("parentToolUseID") or "") or agent or "sidechain"

    def _answer(self, entry: dict[str, Any], message: dict[str, Any], at: float | None, within: str) -> None:
        told, model = self.chronicle, str(message.get("model") or "")
        if entry.get("isApiErrorMessage"):
            text = text_in(message.get("content"))
            told.fail(text, str(entry.get("error") or ""), at, within=within)
            told.failure = None if within else failure_of(text)
            return
        if not within:
            told.model, told.failure = model or told.model, None
            told.finish_reason = _FINISHES.get(str(message.get("stop_reason")), told.finish_reason)
        told.used(str(message.get("id") or entry.get("uuid")), _usage(message.get("usage")))
        for block in list_of(message.get("content")):
            self._block(dict_of(block), at, model, within)

    def _block(self, block: dict[str, Any], at: float | None, model: str, within: str) -> None:
        told, kind = self.chronicle, str(block.get("type"))
        if kind == "text":
            told.say(str(block["text"]), at, model=model, within=within)
        elif kind == "thinking":
            told.think(str(block.get("thinking") or ""), at, within=within)
        elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            server, tool = split_tool(str(block.get("name")))
            told.call(str(block["id"]), tool, block.get("input"), at, server=server, within=within)
        elif kind.endswith("_tool_result"):
            told.returned(str(block["tool_use_id"]), text_in(block.get("content")), at)
        elif kind != "redacted_thinking":
            told.skip(f"block {name_of(kind)}")

    def _user(self, entry: dict[str, Any], message: dict[str, Any], at: float | None, within: str) -> None:
        content = message.get("content")
        results = [dict_of(block) for block in list_of(content) if dict_of(block).get("type") == "tool_result"]
        for block in results:
            self._result(entry, block, at, within)
        others = [block for block in list_of(content) if dict_of(block).get("type") != "tool_result"]
        text = content if isinstance(content, str) else text_in(others)
        if entry.get("isCompactSummary"):
            self.chronicle.instruct(text, at, within=within)  # what is left of the context
        elif dict_of(entry.get("origin")).get("kind"):
            self.chronicle.instruct(text, at, within=within)  # such as that a subagent is done: no user says it
        elif text.startswith(_INTERRUPTED):
            self.chronicle.note(text.strip("[]"), at, within=within)
        elif not entry.get("isMeta") and not text.startswith(_NO_PROMPT):
            self.chronicle.ask(text, at, within=within)

    def _result(self, entry: dict[str, Any], block: dict[str, Any], at: float | None, within: str) -> None:
        told, name, text = self.chronicle, str(block.get("tool_use_id")), text_in(block.get("content"))
        beside_it = entry.get("toolUseResult")
        facts = dict_of(beside_it)
        error = bool(block.get("is_error"))
        decision = dict_of(entry.get("permissionDecision")).get("decision")
        rejected = decision in ("reject", "deny") or bool(entry.get("toolDenialKind"))
        rejected = rejected or (error and text.startswith(_REFUSALS))
        told.returned(name, text, at, error=error, rejected=rejected)
        path = facts.get("filePath")
        if isinstance(path, str) and not error and (facts.get("type") in _HOW or "structuredPatch" in facts):
            told.changed(path, _HOW.get(str(facts.get("type")), "modified"), at, within=within)
        agent = facts.get("agentId")
        if isinstance(agent, str) and not within:
            self._starters.setdefault(agent, name)
            self._delegated(agent)

    def _delegated(self, agent: str) -> None:
        """Tell what a subagent did in a file of its own, where it was called."""
        source = self._parts.pop(agent, None)
        if source is None:
            return
        for entry in entries(source, self.chronicle):
            own = {**entry, "isSidechain": True, "agentId": agent}
            tolerant(self.chronicle, str(entry.get("type")), self.take, own)

    def _system(self, entry: dict[str, Any], at: float | None, within: str) -> None:
        kind = str(entry.get("subtype"))
        if kind in ("compact_boundary", "microcompact_boundary"):
            self.chronicle.note(_COMPACTED, at, within=within)
        elif kind == "api_error":
            self.chronicle.fail(text_in(entry.get("content")) or "the API gave an error", kind, at, within=within)
        elif kind not in _SYSTEM:
            self.chronicle.skip(f"system {name_of(kind)}")

    def finish(self) -> None:
        """Tell what subagents did whose calls are not in the log."""
        for agent in list(self._parts):
            self._delegated(agent)


_FINISHES = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "refusal"}


def _usage(told: Any) -> Usage | None:
    """Return the tokens of one reply; those of the cache are apart from the others."""
    if not isinstance(told, dict):
        return None
    read, written = count_of(told.get("cache_read_input_tokens")), count_of(told.get("cache_creation_input_tokens"))
    return Usage(
        prompt=count_of(told.get("input_tokens")) + read + written,
        completion=count_of(told.get("output_tokens")),
        cache_read=read,
        cache_write=written,
        cache_write_1h=count_of(dict_of(told.get("cache_creation")).get("ephemeral_1h_input_tokens")),
        reasoning=count_of(dict_of(told.get("output_tokens_details")).get("thinking_tokens")),
    )
