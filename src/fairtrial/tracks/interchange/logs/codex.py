"""Sessions of Codex: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.answer import Usage
from fairtrial.foreign.chronicle import Chronicle
from fairtrial.foreign.logs import LoggedSession
from fairtrial.foreign.source import Source
from fairtrial.tracks.interchange.logs._lines import entries, is_context, split_tool, text_in, tolerant
from fairtrial.tracks.interchange.values import count_of, dict_of, list_of, name_of, number_of, seconds_of, text_of

_SILENT = frozenset({"world_state", "token_usage_record", "inter_agent_communication_metadata", "ghost_snapshot"})
_QUIET = frozenset({
    "task_started", "task_complete", "turn_started", "turn_complete", "thread_settings_applied", "item_started",
    "thread_name_updated", "agent_message_delta", "agent_reasoning_section_break", "exec_command_begin",
    "mcp_tool_call_begin", "patch_apply_begin", "turn_diff", "plan_update", "web_search_begin", "web_search_end",
    "session_configured", "background_event", "entered_review_mode", "exited_review_mode", "view_image_tool_call",
})  # fmt: skip
_EXIT = re.compile(r"Process exited with code (-?\d+)|^Exit code: (-?\d+)", re.MULTILINE)
_REJECTED = re.compile(r"Rejected\(|rejected by user|execution denied", re.IGNORECASE)
_HOW = {"add": "added", "delete": "removed", "update": "modified"}
_SHOWN = {"user_message": "user", "agent_message": "assistant", "agent_reasoning": "thought"}
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})


def recognises(source: Source) -> bool:
    """Return whether a file is of this format."""
    if source.suffix != ".jsonl":
        return False
    first = source.first
    return first.get("type") == "session_meta" or (
        {"timestamp", "type", "payload"} <= first.keys() and b'"response_item"' in source.head
    )


def companions(source: Source) -> Iterable[Path]:
    """Return nothing: a session is one file."""
    return ()


def sessions(source: Source) -> Iterator[LoggedSession]:
    """Yield the session in a file."""
    told = _Rollout(source)
    for entry in entries(source, told.chronicle):
        tolerant(told.chronicle, str(entry.get("type")), told.take, entry)
    session = told.chronicle.session()
    if session is not None:
        yield session


class _Rollout:
    """The lines of one session. Most is in it twice: as it was sent to the model, and as it was shown."""

    def __init__(self, source: Source) -> None:
        self.chronicle = Chronicle("codex")
        self.chronicle.id = source.name.removesuffix(".jsonl")
        self._open: Counter[tuple[str, str, bool]] = Counter()  # messages whose other form has not come yet
        self._ended: dict[str, tuple[int | None, float | None]] = {}  # commands: exit code, milliseconds
        self._sum = self._before = Usage()
        self._compacted = False

    def take(self, entry: dict[str, Any]) -> None:
        """Take one line."""
        kind, payload, at = str(entry.get("type")), dict_of(entry.get("payload")), seconds_of(entry.get("timestamp"))
        if kind == "session_meta":
            self._meta(payload)
        elif kind == "turn_context":
            self.chronicle.model = str(payload.get("model") or self.chronicle.model)
            self.chronicle.folder = self.chronicle.folder or str(payload.get("cwd") or "")
        elif kind == "response_item":
            self._item(payload, at)
        elif kind == "event_msg":
            self._event(payload, at)
        elif kind == "compacted":
            self._shortened(at)
        elif kind not in _SILENT:
            self.chronicle.skip(name_of(kind))

    def _meta(self, payload: dict[str, Any]) -> None:
        told = self.chronicle
        told.id, told.version = str(payload.get("id") or told.id), str(payload.get("cli_version") or "")
        told.folder, told.branch = str(payload.get("cwd") or ""), str(dict_of(payload.get("git")).get("branch") or "")
        told.system = text_of(dict_of(payload.get("base_instructions")).get("text"))

    def _once(self, role: str, text: str, *, shown: bool) -> bool:
        """Return whether a message comes for the first time: it comes once as sent and once as shown."""
        if self._open[role, text, not shown]:
            self._open[role, text, not shown] -= 1
            return False
        self._open[role, text, shown] += 1
        return True

    def _said(self, role: str, text: str, at: float | None, *, shown: bool) -> None:
        if not self._once(role, text, shown=shown):
            return
        if role == "user":
            self._compacted = False
            self.chronicle.ask(text, at)
        elif role == "thought":
            self.chronicle.think(text, at)
        else:
            self.chronicle.say(text, at, model=self.chronicle.model)

    # -- as it was sent to the model -------------------------------------------------------------

    def _item(self, item: dict[str, Any], at: float | None) -> None:
        kind = str(item.get("type"))
        if kind == "message":
            self._message(item, at)
        elif kind == "reasoning":
            for part in [*list_of(item.get("summary")), *list_of(item.get("content"))]:
                self._said("thought", text_in([part]), at, shown=False)
        elif kind in _CALLS:
            self._call(kind, item, at)
        elif kind in _OUTPUTS:
            self._output(item, at)
        elif kind not in _SILENT:
            self.chronicle.skip(f"item {name_of(kind)}")

    def _message(self, item: dict[str, Any], at: float | None) -> None:
        role, text = str(item.get("role")), text_in(item.get("content"))
        if role == "assistant" or (role == "user" and not is_context(text)):
            self._said(role, text, at, shown=False)

    def _call(self, kind: str, item: dict[str, Any], at: float | None) -> None:
        name = str(item.get("call_id") or item.get("id"))
        if kind == "local_shell_call":
            tool, arguments = "local_shell", item.get("action")
        elif kind == "web_search_call":
            tool, arguments = "web_search", item.get("action")
        else:
            tool = str(item.get("name") or kind.removesuffix("_call"))
            arguments = _arguments(item.get("arguments", item.get("input")))
        space = str(item.get("namespace") or "")
        server, tool = split_tool(f"{space}__{tool}" if space.startswith("mcp__") else tool)
        self.chronicle.call(name, tool, arguments, at, server=server)
        if kind == "web_search_call":
            self.chronicle.returned(name, "", at, error=item.get("status") == "failed")

    def _output(self, item: dict[str, Any], at: float | None) -> None:
        name = str(item.get("call_id"))
        text, code, seconds = _result(item.get("output"))
        ended = self._ended.pop(name, None)
        code, ms = ended if ended is not None else (code, None if seconds is None else 1000 * seconds)
        rejected = _REJECTED.search(text[:500]) is not None and code is None
        error = bool(code) or rejected or (code is None and text.startswith(("exec_command failed", "failed")))
        self.chronicle.returned(name, text, at, error=error, rejected=rejected, ms=ms)

    # -- as it was shown ---------------------------------------------------------------------------

    def _event(self, event: dict[str, Any], at: float | None) -> None:
        kind, told = str(event.get("type")), self.chronicle
        if kind == "item_completed":
            self._completed(dict_of(event.get("item")), event, at)
        elif kind in _SHOWN:
            self._said(_SHOWN[kind], str(event.get("message") or event.get("text") or ""), at, shown=True)
        elif kind == "token_count":
            self._tokens(dict_of(dict_of(event.get("info")).get("total_token_usage")))
        elif kind == "exec_command_end":
            self._command(str(event.get("call_id")), event)
        elif kind in ("patch_apply_end", "mcp_tool_call_end"):
            self._applied(event, at)
        elif kind in ("error", "stream_error"):
            told.fail(str(event.get("message") or kind), kind, at)
        elif kind == "turn_aborted":
            told.note(f"The turn was ended: {event.get('reason') or 'aborted'}", at)
        else:
            self._other(kind, at)

    def _other(self, kind: str, at: float | None) -> None:
        if kind == "context_compacted":
            self._shortened(at)
        elif kind not in _QUIET:
            self.chronicle.skip(f"event {name_of(kind)}")

    def _completed(self, item: dict[str, Any], event: dict[str, Any], at: float | None) -> None:
        kind = str(item.get("type"))
        if kind in ("UserMessage", "AgentMessage"):
            role = "user" if kind == "UserMessage" else "assistant"
            self._said(role, text_in(item.get("content")), at, shown=True)
        elif kind == "Reasoning":
            for part in list_of(item.get("summary_text")):
                self._said("thought", str(part), at, shown=True)
        elif kind == "CommandExecution":
            self._command(str(item.get("id")), item)
        elif kind == "FileChange":
            self._applied({**item, "success": item.get("status") == "completed"}, at)
        elif kind == "McpToolCall":
            self._ended[str(item.get("id"))] = (int(item.get("status") != "completed"), _milliseconds(item))
        elif kind == "ContextCompaction":
            self._shortened(at)
        elif kind not in ("WebSearch", "Plan", "ImageView"):
            self.chronicle.skip(f"shown {name_of(kind)}")

    def _command(self, name: str, item: dict[str, Any]) -> None:
        code = item.get("exit_code")
        if item.get("status") == "declined":
            self.chronicle.returned(name, text_of(item.get("aggregated_output")), error=True, rejected=True)
        elif isinstance(code, int) and not self.chronicle.has_returned(name):
            self._ended[name] = (code, _milliseconds(item))

    def _applied(self, event: dict[str, Any], at: float | None) -> None:
        if event.get("success") is False:
            return
        for path, change in dict_of(event.get("changes")).items():
            kind = change if isinstance(change, str) else dict_of(change).get("type")
            how = kind or next(iter(dict_of(change)), "update")
            self.chronicle.changed(str(path), _HOW.get(str(how), "modified"), at)

    def _tokens(self, total: dict[str, Any]) -> None:
        """Take the sum so far; a session that goes on without its past begins again at 0."""
        if not total:
            return
        usage = Usage(
            prompt=count_of(total.get("input_tokens")),
            completion=count_of(total.get("output_tokens")),
            cache_read=count_of(total.get("cached_input_tokens")),
            cache_write=count_of(total.get("cache_write_input_tokens")),
            reasoning=count_of(total.get("reasoning_output_tokens")),
        )
        if usage.prompt < self._sum.prompt:
            self._before += self._sum
        self._sum = usage
        self.chronicle.usage = self._before + usage

    def _shortened(self, at: float | None) -> None:
        if not self._compacted:
            self.chronicle.note("The agent shortened its context.", at)
        self._compacted = True  # it is told in up to three forms


def _arguments(value: Any) -> Any:
    """Return arguments, which are JSON in a text; a tool of free form has just a text."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value


def _result(output: Any) -> tuple[str, int | None, float | None]:
    """Return the text of an output, the exit code and the seconds in it, as versions write them."""
    text = output if isinstance(output, str) else text_in(output) or text_of(output)
    if text.startswith('{"output"'):
        told = dict_of(_arguments(text))
        facts = dict_of(told.get("metadata"))
        code, seconds = facts.get("exit_code"), number_of(facts.get("duration_seconds"))
        return text_of(told.get("output")), code if isinstance(code, int) else None, seconds
    found = _EXIT.search(text[:500])
    return text, int(found[1] or found[2]) if found else None, None


def _milliseconds(item: dict[str, Any]) -> float | None:
    took = item.get("duration")
    if isinstance(took, dict):
        return 1000 * count_of(took.get("secs")) + count_of(took.get("nanos")) / 1e6
    return number_of(item.get("duration_ms"))
