"""The sessions in logs as the cases of a suite: what users asked agents, asked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

from fairtrial.core.errors import FairtrialError
from fairtrial.core.events import CallEvent
from fairtrial.core.providers import known_providers
from fairtrial.core.variables import escape_all
from fairtrial.foreign.logs import LoggedSession
from fairtrial.foreign.suites import NO_JUDGE, Imported, write_suite
from fairtrial.text.printable import counted
from fairtrial.tracks.interchange.import_sessions import arm_name, case_of, sessions_in
from fairtrial.tracks.interchange.traces.redact import Redactor

Expecting = Literal["answer", "tools"]
_NO_LABEL = {"type": "length", "min": 1}


class CasesWritten(NamedTuple):
    """What became of the sessions."""

    path: Path
    cases: int
    lines: list[str]  # what the user should know


def write_session_cases(
    paths: Any,
    output: Path,
    *,
    form: str | None = None,
    expected: Expecting | None = None,
    redact: Sequence[str] = (),
    force: bool = False,
) -> CasesWritten:
    """Write a suite with a case for each first message of a user; later messages of the session are its turns."""
    if output.suffix not in (".yaml", ".yml"):
        raise FairtrialError(f"{output}: write a suite (.yaml)")
    if output.exists() and not force:
        raise FairtrialError(f"{output} already exists: choose another file, or overwrite it with --force")
    redactor = Redactor(redact)
    cases: dict[str, dict[str, Any]] = {}
    targets: Counter[str] = Counter()
    again = 0
    for session in sessions_in(paths, form):
        name = case_of(session)
        targets[arm_name(session)] += 1
        if name in cases:
            again += 1
            continue
        cases[name] = escape_all(_case(name, session, redactor, expected))
    if not cases:
        raise FairtrialError("no session in these logs has a message of its user: there are no cases")
    lines = list(_lines(cases, again, redactor, expected))
    suite = {"name": output.stem, "targets": [_target(targets)], "scorer": _NO_LABEL, "cases": list(cases.values())}
    write_suite(Imported(suite, [], lines), output, source="logs of sessions", tool="import log")
    return CasesWritten(output, len(cases), lines)


def _case(name: str, session: LoggedSession, redactor: Redactor, expected: Expecting | None) -> dict[str, Any]:
    said = [redactor.text(text) for text in session.said]
    case: dict[str, Any] = {"id": redactor.text(name)}
    case |= {"input": said[0]} if len(said) == 1 else {"turns": said}
    tools = _tools(session)
    if expected == "answer" and session.answer:
        case |= {"expected": redactor.text(session.answer), "scorer": "f1"}
    elif expected == "tools" and tools:
        case |= {"tools": [{"name": tool} for tool in tools], "scorer": "tool_calls"}
    recorded = {"agent": session.agent, "model": session.model, "tools": tools}
    return {**case, "metadata": {"recorded": {key: value for key, value in recorded.items() if value}}}


def _tools(session: LoggedSession) -> list[str]:
    """Return the tools that the agent itself called, in order; one that is called many times in a row is there once."""
    calls = (event for event in session.events if isinstance(event, CallEvent) and not event.within)
    names = (f"{call.server}.{call.tool}" if call.server else call.tool for call in calls)
    return [name for name, _ in groupby(names)]


def _target(targets: Counter[str]) -> str:
    """Return the agent of most sessions, if it can be asked from here."""
    for name, _ in targets.most_common():
        if name.partition(":")[0] in known_providers():
            return name
    return NO_JUDGE


def _lines(
    cases: dict[str, dict[str, Any]], again: int, redactor: Redactor, expected: Expecting | None
) -> Iterator[str]:
    if again:
        yield f"{counted(again, 'session')} with the same first message left out"
    turns = sum("turns" in case for case in cases.values())
    if turns:
        yield f"{counted(turns, 'conversation')}: the user's turns are kept, the answers between them are given anew"
    if redactor.counts:
        found = ", ".join(f"{count} × {kind}" for kind, count in redactor.counts.most_common())
        yield f"redacted: {found}"
    bare = sum("scorer" not in case for case in cases.values())
    if bare:
        what = "" if expected is None else f" without {expected}"
        yield f"{counted(bare, 'case')}{what} scored by `length` alone until you choose a scorer"
    yield "agents worked in folders as they were then: give each case its files with `workspace`"
