"""What the SDK of Claude Code reports about a session, message by message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairtrial.agents.record import Record
from fairtrial.core.answer import Answer, Failure, SoFar, Usage
from fairtrial.core.events import LimitKind

_STATUS_KINDS = {401: "auth", 403: "auth", 404: "model", 429: "rate_limited"}
_ERROR_KINDS = {
    "authentication_failed": "auth",
    "billing_error": "auth",
    "rate_limit": "rate_limited",
    "server_error": "server",
    "invalid_request": "refused",
}
_RETRYABLE = {"rate_limited", "server", "mcp"}
_UNCONNECTED = {"failed", "needs-auth", "disabled", "not listed"}
_LIMITS: dict[str, LimitKind] = {"error_max_turns": "turns", "error_max_budget_usd": "money"}
_FINISHED = {"end_turn": "stop", "max_tokens": "length"}
_DELEGATING = ("Agent", "Task")  # tools that start subagents


class SessionTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What a session has taken over all its turns, with its subagents."""

    usage: Usage = Usage()
    cost_usd: float = 0.0

    def since(self, later: SessionTotals, own: Usage) -> SessionTotals | None:
        """Return what was added until later, when the agent itself used these tokens; None if nothing is known later.

        Where a session is gone on with, its counts may begin anew: then they are smaller than both together.
        """
        before, after = self.usage, later.usage
        if not after.prompt:
            return None
        goes_on = after.prompt >= before.prompt + own.prompt and after.completion >= before.completion + own.completion
        if not goes_on:
            return later
        counts = zip(msgspec.structs.astuple(after), msgspec.structs.astuple(before), strict=True)
        added = [max(0, one - other) for one, other in counts]
        usage = Usage(**dict(zip(after.__struct_fields__, added, strict=True)))
        return SessionTotals(usage=usage, cost_usd=max(0.0, later.cost_usd - self.cost_usd))


class ClaudeMessages:
    """Reads the messages of one session into its record.

    `before` is what the session had taken when this turn began: Claude Code's own counts go on from there.
    """

    def __init__(
        self,
        record: Record,
        limits: Mapping[LimitKind, float | None],
        before: SessionTotals | None = None,
    ) -> None:
        self.record, self._limits = record, limits
        self._before = before or SessionTotals()
        self.totals: SessionTotals | None = None  # when it has ended
        self._usages: dict[str, dict[str, Any]] = {}  # by reply of the model, as far as reported
        self._error: str | None = None
        self._result: Any = None

    def take(self, message: Any) -> Failure | None:
        """Record a message; return a failure if there is no point in continuing."""
        from claude_agent_sdk import AssistantMessage, ResultMessage, SystemMessage, UserMessage

        record = self.record
        if isinstance(message, SystemMessage) and message.subtype == "init":
            record.begin()
            record.servers = {server["name"]: server["status"] for server in message.data.get("mcp_servers") or ()}
            return self._unconnected()
        if isinstance(message, AssistantMessage):
            within = message.parent_tool_use_id or ""
            record.model, self._error = record.model if within else message.model, message.error or self._error
            self._usages[message.message_id or ""] = message.usage or {}
            usages = [usage for reported in self._usages.values() if (usage := _usage(reported)) is not None]
            record.usage = sum(usages[1:], usages[0]) if usages else None
            for block in message.content:
                self._add_block(block, within)
        elif isinstance(message, UserMessage) and isinstance(message.content, list):
            for block in message.content:
                self._add_tool_result(block)
        elif isinstance(message, SystemMessage) and message.subtype == "compact_boundary":
            record.note("Claude Code shortened its context")
        elif isinstance(message, ResultMessage):
            self._take_result(message)
        return None

    def _take_result(self, done: Any) -> None:
        self._result, record = done, self.record
        record.turns, record.session_id = done.num_turns, done.session_id
        record.usage, record.cost_usd = _usage(done.usage), _cost(done)
        for denial in done.permission_denials or ():
            record.reject(str(denial.get("tool_use_id")))
        # `usage` lacks subagents; the counts by model have them, and those of the turns before.
        self.totals = SessionTotals(usage=_whole_usage(done.model_usage or {}), cost_usd=done.total_cost_usd or 0.0)
        own, whole = record.usage or Usage(), self._before.since(self.totals, record.usage or Usage())
        if whole is None:
            return
        if whole.usage.prompt >= own.prompt and whole.usage.completion >= own.completion:
            record.usage = whole.usage
        if record.cost_usd is not None:
            record.cost_usd = whole.cost_usd

    def _unconnected(self) -> Failure | None:
        for name in self.record.wanted:
            status = self.record.servers.get(name, "not listed")
            if status in _UNCONNECTED:
                return Failure(
                    kind="mcp", message=f"the MCP server `{name}` did not connect ({status})", retryable=True
                )
        return None

    def _add_block(self, block: Any, within: str) -> None:
        from claude_agent_sdk import TextBlock, ThinkingBlock, ToolUseBlock

        if isinstance(block, TextBlock):
            self.record.say(block.text, within=within)
        elif isinstance(block, ThinkingBlock):
            self.record.think(block.thinking, within=within)
        elif isinstance(block, ToolUseBlock):
            server, tool = self._split(block.name)
            self.record.call(block.id, tool, server, block.input, within=within)
            if server is None and tool in _DELEGATING:
                self.record.delegate(block.id, str(block.input.get("subagent_type") or "subagent"))

    def _add_tool_result(self, block: Any) -> None:
        from claude_agent_sdk import ToolResultBlock

        if isinstance(block, ToolResultBlock):
            content = block.content
            parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content or ()]
            self.record.returned(block.tool_use_id, "\n".join(parts), error=bool(block.is_error))

    def _split(self, name: str) -> tuple[str | None, str]:
        """Split `mcp__server__tool` into its parts; the agent's built-in tools have no server."""
        for server in self.record.wanted:
            if name.startswith(f"mcp__{server}__"):
                return server, name.removeprefix(f"mcp__{server}__")
        return None, name

    def result(self) -> Answer | Failure:
        """Return the result of the session."""
        done, record = self._result, self.record
        if done is None:
            return record.failure("crashed", "Claude Code ended without a result", retryable=True)
        limited = done.subtype in _LIMITS
        if not limited and (done.is_error or done.subtype != "success"):
            return self._failed(done)
        for name in record.wanted:
            if self._was_pending(name):
                # Not retryable: asking until the tool is used would select answers.
                message = f"the MCP server `{name}` was still connecting when the agent started"
                return record.failure("mcp", message)
        if limited:
            kind = _LIMITS[done.subtype]
            limit = self._limits.get(kind)
            record.stopped(kind, limit)
            if kind == "turns" and limit is not None:
                record.turns = int(limit)  # it counts one that it did not take
            return record.unfinished()
        return record.answer(done.result or "", _FINISHED.get(done.stop_reason or "", done.stop_reason))

    def _was_pending(self, server: str) -> bool:
        return self.record.servers.get(server) == "pending" and not self.record.has_used(server)

    def so_far(self) -> SoFar:
        """Return what is known about a session that has not ended."""
        so_far, servers = self.record.so_far(), self.record.servers
        called = {call.get("server") for call in (so_far.trace or {}).get("tool_calls") or ()}
        pending = any(servers.get(name) == "pending" and name not in called for name in self.record.wanted)
        return msgspec.structs.replace(so_far, ready=so_far.ready and not pending)

    def _failed(self, done: Any) -> Failure:
        status = done.api_error_status
        kind = _STATUS_KINDS.get(status) or ("server" if status and status >= 500 else None)
        kind = kind or _ERROR_KINDS.get(self._error or "", "crashed")
        reasons = [done.result or "", *(done.errors or ())]
        message = "Claude Code: " + (" ".join(filter(None, reasons)) or done.subtype)
        return self.record.failure(kind, message, retryable=kind in _RETRYABLE)

    def failure_of(self, error: Exception, errors: list[str]) -> Answer | Failure:
        """Turn an SDK exception into a failure; an earlier failed result is more informative, and is preferred."""
        if self._result is not None and (self._result.is_error or self._result.subtype != "success"):
            return self.result()
        output = " ".join(" ".join(errors).split())[-1500:]
        message = f"Claude Code: {error}" + (f"; it wrote: {output}" if output else "")
        return self.record.failure("crashed", message)


def _usage(reported: dict[str, Any] | None) -> Usage | None:
    if not reported:
        return None
    read, written = reported.get("cache_read_input_tokens") or 0, reported.get("cache_creation_input_tokens") or 0
    return Usage(
        prompt=(reported.get("input_tokens") or 0) + read + written,
        completion=reported.get("output_tokens") or 0,
        cache_read=read,
        cache_write=written,
        reasoning=(reported.get("output_tokens_details") or {}).get("thinking_tokens") or 0,
    )


def _whole_usage(models: dict[str, Any]) -> Usage:
    """Return the tokens of all models that a session used."""
    counted = [
        Usage(
            prompt=sum(
                model.get(name) or 0 for name in ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
            ),
            completion=model.get("outputTokens") or 0,
            cache_read=model.get("cacheReadInputTokens") or 0,
            cache_write=model.get("cacheCreationInputTokens") or 0,
            reasoning=model.get("thinkingTokens") or 0,
            cache_write_1h=model.get("cacheCreationEphemeral1hInputTokens") or 0,
        )
        for model in models.values()
    ]
    return sum(counted, Usage())


def _cost(done: Any) -> float | None:
    """Return the cost, or None for an unknown model, for which Claude Code makes up a price."""
    models = (done.model_usage or {}).values()
    if any(model.get("costBasis") == "unknown" for model in models):
        return None
    return done.total_cost_usd  # type: ignore[no-any-return]
