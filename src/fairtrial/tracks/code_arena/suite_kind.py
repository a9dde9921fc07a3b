"""The Code Arena prompts, as cases with checks."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairtrial.config.case_document import CaseEntry, ParamsEntry
from fairtrial.config.cases import inline_case
from fairtrial.config.document import SuiteDocument, SuiteEntry
from fairtrial.config.source import SuiteSource
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case
from fairtrial.core.registry import nearest
from fairtrial.tracks.code_arena import prompts as code_arena

_FOR_PROBLEMS = (
    "family",
    "n",
    "seed",
    "time_limit",
    "styles",
    "match_length",
    "answer",
    "sandbox",
    "seconds",
    "memory_mb",
)
_TIMEOUT = 300.0  # seconds; a page also takes longer


def cases(entry: SuiteEntry, first: int, _: Path) -> list[Case]:
    """Return the selected prompts as cases; the first one has this position."""
    entries = enumerate(_entries(entry), first)
    return [inline_case(case, number, Path(), fetch=False) for number, case in entries]


def _entries(entry: SuiteEntry) -> list[CaseEntry]:
    known = {case["id"]: case for case in code_arena.cases()}
    ids = [entry.ids] if isinstance(entry.ids, str) else entry.ids
    for name in ids:
        if name not in known:
            raise FairtrialError(f"the code arena has no prompt `{name}`{nearest(name, list(known))}")
    levels = [entry.difficulty] if isinstance(entry.difficulty, str) else entry.difficulty
    chosen = [known[name] for name in ids] or [
        case for case in known.values() if not levels or case["difficulty"] in levels
    ]
    return msgspec.convert(chosen[: entry.count], list[CaseEntry])


def with_defaults(source: SuiteSource, document: SuiteDocument) -> SuiteDocument:
    """Set what pages need, unless the suite does: a scorer that opens them, enough tokens, and enough time."""
    assert document.suite is not None
    written = source.value["suite"]
    for name in _FOR_PROBLEMS:
        if isinstance(written, dict) and name in written:
            source.problem(
                ("suite", name), f"`{name}` selects optimisation problems; it does not apply to the code arena"
            )
    params = document.params or ParamsEntry()
    if params.max_tokens is msgspec.UNSET:
        params = msgspec.structs.replace(params, max_tokens=code_arena.MAX_TOKENS)
    judged = document.judge is not None or bool(document.judges)
    return msgspec.structs.replace(
        document,
        params=params,
        scorer=document.scorer if "scorer" in source.value else "code_judge" if judged else "browser",
        timeout=document.timeout if "timeout" in source.value else _TIMEOUT,
    )
