"""The prompts of the Code Arena, as cases with checks."""

from __future__ import annotations

import msgspec

from fairtrial.config.document import CaseEntry, ParamsEntry, SuiteDocument, SuiteEntry
from fairtrial.config.source import Source
from fairtrial.core.errors import FairtrialError
from fairtrial.core.registry import nearest
from fairtrial.suites import code_arena

_FOR_PROBLEMS = ("family", "n", "seed", "time_limit", "styles")
_LONGEST = 8192  # tokens: a page is longer than an answer
_PATIENCE = 300.0  # seconds: and takes longer


def arena_entries(entry: SuiteEntry) -> list[CaseEntry]:
    """The chosen prompts."""
    known = {case["id"]: case for case in code_arena.cases()}
    wanted = [entry.ids] if isinstance(entry.ids, str) else entry.ids
    for name in wanted:
        if name not in known:
            raise FairtrialError(f"the code arena has no prompt `{name}`{nearest(name, list(known))}")
    levels = [entry.difficulty] if isinstance(entry.difficulty, str) else entry.difficulty
    chosen = [known[name] for name in wanted] or [
        case for case in known.values() if not levels or case["difficulty"] in levels
    ]
    return msgspec.convert(chosen[: entry.count], list[CaseEntry])


def with_arena_defaults(source: Source, document: SuiteDocument) -> SuiteDocument:
    """What pages need, unless the suite says otherwise: a scorer that looks, room for the code, and time."""
    assert document.suite is not None
    written = source.value["suite"]
    for name in _FOR_PROBLEMS:
        if isinstance(written, dict) and name in written:
            source.problem(("suite", name), f"`{name}` chooses optimisation problems, not prompts of the code arena")
    params = document.params or ParamsEntry()
    if params.max_tokens is msgspec.UNSET:
        params = msgspec.structs.replace(params, max_tokens=_LONGEST)
    judged = document.judge is not None or bool(document.judges)
    return msgspec.structs.replace(
        document,
        params=params,
        scorer=document.scorer if "scorer" in source.value else "code_judge" if judged else "browser",
        timeout=document.timeout if "timeout" in source.value else _PATIENCE,
    )
