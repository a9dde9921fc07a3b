"""Resolving what stands in for an MCP server: `record`, `replay` and `mock`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from fairtrial.agents.doubles.cassette import CassetteError
from fairtrial.agents.doubles.mocks import MockError, error_result, result_of
from fairtrial.agents.doubles.played import read_played
from fairtrial.config.mcp_document import McpEntry
from fairtrial.config.source import SuiteSource
from fairtrial.core.double import ServerDouble
from fairtrial.core.options import Path as KeyPath


def has_double(entry: McpEntry) -> bool:
    """Return whether something stands in for a server, so that it need not be there."""
    return (entry.replay is not None or entry.mock is not None) and entry.unknown != "ask"


def double_of(source: SuiteSource, path: KeyPath, entry: McpEntry) -> ServerDouble | None:
    """Return what stands in for a server; None if nothing does, or if it is not right."""
    before = len(source.problems)
    played = entry.replay if entry.replay is not None else entry.mock
    _check(source, path, entry, played)
    if len(source.problems) > before or (played is None and entry.record is None):
        return None
    double = ServerDouble(
        play=str(_place(source, played)) if played is not None else "",
        mock=entry.mock is not None,
        record=str(_place(source, entry.record)) if entry.record is not None else "",
        shown=played or entry.record or "",
        unknown=_unknown(entry.unknown),
        ignore=tuple(entry.ignore),
    )
    if played is None:
        return double
    try:
        return msgspec.structs.replace(double, sha256=read_played(double).sha256)
    except (CassetteError, MockError) as error:
        key = "mock" if entry.mock is not None else "replay"
        there = double.mock or Path(double.play).exists()
        advice = "" if there else f"; record it first: `record: {played}` with the server's `command` or `url`"
        source.problem((*path, key), f"{double} cannot be used: {error}{advice}")
        return None


def _check(source: SuiteSource, path: KeyPath, entry: McpEntry, played: str | None) -> None:
    if entry.replay is not None and entry.mock is not None:
        source.problem(path, "an MCP server has either `replay` or `mock`")
    if played is None and entry.unknown is not None:
        source.problem((*path, "unknown"), "`unknown` says what a `replay` or `mock` does with other calls")
    if played is None and entry.ignore:
        source.problem((*path, "ignore"), "`ignore` is for the calls that a `replay` looks for")
    if played is not None and entry.record is not None and entry.unknown != "ask":
        source.problem((*path, "record"), "a `replay` has only something to record with `unknown: ask`")
    if entry.unknown is None or entry.unknown in ("fail", "ask"):
        return
    rule = entry.unknown
    if not isinstance(rule, dict) or len(rule) != 1 or not rule.keys() <= {"error", "result"}:
        source.problem((*path, "unknown"), "`unknown` is `fail`, `ask`, {error: TEXT} or {result: …}")
    elif not isinstance(rule.get("error", ""), str):
        source.problem((*path, "unknown", "error"), "an error is a text")


def _unknown(rule: Any) -> Any:
    """Return what comes of calls that were not recorded."""
    if not isinstance(rule, dict):
        return rule or "fail"
    return error_result(rule["error"]) if "error" in rule else result_of(rule["result"])


def _place(source: SuiteSource, name: str) -> Path:
    return (source.folder / name).absolute()
