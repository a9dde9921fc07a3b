"""Whether a skill fired in a trial, and whether its case wants it to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from fairtrial.core.calls import MadeCall
from fairtrial.core.experiment import Case

Wanted = Literal["fires", "silent"]
ANY = ""  # in the place of a name: the only skill that there is; if all are to be silent, every one
_TOOL, _FILE = "Skill", "SKILL.md"


def wanted_of(case: Case) -> dict[str, Wanted]:
    """Return what a case wants of skills, by their names; empty if it does not say. A row has it in its column."""
    written = (case.metadata or {}).get("skill", case.columns.get("skill"))
    if isinstance(written, str):
        written = {ANY: written}
    if not isinstance(written, Mapping):
        return {}
    return {str(name): how for name, how in written.items() if how in ("fires", "silent")}


def wants(case: Case, skill: str, skills: Iterable[str]) -> Wanted | None:
    """Return what a case wants of a skill that is given among these; None if it does not say."""
    wanted = wanted_of(case)
    if skill in wanted or ANY not in wanted:
        return wanted.get(skill)
    return "silent" if wanted[ANY] == "silent" or list(skills) != [skill] else "fires"


def fired(calls: Iterable[MadeCall]) -> list[str]:
    """Return the skills that were used, in their order: by the tool for it, or by reading their `SKILL.md`."""
    return list(dict.fromkeys(name for call in calls for name in _used(call)))


def _used(call: MadeCall) -> list[str]:
    if call.server is not None or (call.error and call.tool == _TOOL):
        return []
    if call.tool == _TOOL:
        arguments = call.arguments if isinstance(call.arguments, Mapping) else {}
        return [str(arguments.get("skill") or arguments.get("command")).rpartition(":")[2]]
    return [name for text in _texts(call.arguments) for name in re.findall(rf"([^/\\\s'\"]+)[/\\]{_FILE}\b", text)]


def _texts(value: Any) -> list[str]:
    """Return the texts in the arguments of a call: a path to read, a command, or the parts of one."""
    if isinstance(value, str):
        return [value]
    parts: Iterable[Any] = (
        value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    )
    return [text for part in parts for text in _texts(part)]
