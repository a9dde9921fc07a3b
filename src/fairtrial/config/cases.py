"""Cases that are written out in a suite, and those of built-in suites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from fairtrial.config.attach import read_attached
from fairtrial.config.case_document import CaseEntry, TurnEntry, listed
from fairtrial.config.document import SuiteDocument
from fairtrial.config.workspaces import own_fields
from fairtrial.core import registry
from fairtrial.core.expected import read_expected
from fairtrial.core.experiment import Case
from fairtrial.core.options import scorer_spec
from fairtrial.core.turn_checks import CHECKS, COMBINE


def built_in_cases(document: SuiteDocument, folder: Path) -> list[Case]:
    """Return the cases of a built-in suite, which come after those that the document lists."""
    assert document.suite is not None
    cases: list[Case] = registry.load("suite_kinds", document.suite.kind).cases(
        document.suite, len(document.cases), folder
    )
    return cases


def inline_case(entry: CaseEntry, index: int, folder: Path, *, fetch: bool) -> Case:
    """Return a case that is written out in a suite; the files it names are fetched from the web if asked."""
    attached = read_attached(listed(entry.attach), folder, fetch=fetch)
    return Case(
        id=entry.id or f"case-{index + 1}",
        input=attached.question(entry.turns[0].input if entry.turns else entry.input or ""),
        attach=attached.files,
        turns=tuple(turn.input for turn in entry.turns[1:]),
        expected=read_expected(entry.expected),
        weight=entry.weight,
        tags=tuple(entry.tags),
        category=entry.category,
        difficulty=entry.difficulty,
        cluster=entry.cluster,
        scorer=scorer_spec(entry.scorer),
        extract=entry.extract.as_spec() if entry.extract else None,
        params=entry.params.given() if entry.params else None,
        repeats=entry.repeats,
        targets=tuple(entry.targets),
        conditions=tuple(entry.conditions),
        on_limit=entry.on_limit,
        metadata=_metadata(entry, folder),
        position=index,
        vars=entry.vars,
    )


def _metadata(entry: CaseEntry, folder: Path) -> dict[str, Any] | None:
    """Return a case's metadata, including its checks, choices, workspace, tool calls, skills and solution."""
    metadata = dict(entry.metadata or {})
    if entry.workspace is not None:
        metadata["workspace"] = own_fields(entry.workspace, folder)
    if entry.tools is not None:
        metadata["tools"] = [_without_empty(msgspec.to_builtins(call)) for call in entry.tools]
    if any(turn.is_checked for turn in entry.turns):
        metadata[CHECKS] = [_turn_check(turn, number) for number, turn in enumerate(entry.turns, 1) if turn.is_checked]
        metadata |= {COMBINE: entry.turns_score} if entry.turns_score else {}
    if entry.forbidden:
        metadata["forbidden"] = [_without_empty(msgspec.to_builtins(call)) for call in entry.forbidden]
    if entry.skill:
        metadata["skill"] = entry.skill
    if entry.solution is not None:
        given = {**msgspec.to_builtins(entry.solution), "files": listed(entry.solution.files)}
        metadata["solution"] = {name: value for name, value in given.items() if value}
    checks = [check for check in entry.checks if check.steps]  # one without was reported where it stands
    if checks:
        metadata["checks"] = [_without_empty(msgspec.to_builtins(check)) for check in checks]
    if entry.choices:
        metadata["choices"] = entry.choices
    return metadata or entry.metadata


def _turn_check(turn: TurnEntry, number: int) -> dict[str, Any]:
    """Return the check after a turn as options of the scorer `turns`; without a `check` it is the suite's scorer."""
    given = turn.check if turn.scorer is None else turn.scorer
    check: dict[str, Any] = {"after": number}
    if given is not None:
        check["check"] = given if isinstance(given, list) else [given]
    if turn.expected is not None:
        check["expected"] = turn.expected
    if turn.weight != 1:
        check["weight"] = turn.weight
    return {**check, "stop": True} if turn.stop else check


def _without_empty(value: Any) -> Any:
    """Remove values that were not set."""
    if isinstance(value, dict):
        return {key: _without_empty(item) for key, item in value.items() if item is not None and item != {}}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value
