"""Import the evals of a skill: a folder with `SKILL.md` and `evals/evals.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import escape
from fairtrial.foreign.suites import FileRef, Imported, expecting, read_text
from fairtrial.tracks.interchange.importers._tasks import AGENT, Findings, as_written, check_exists, with_judge

_KEYS = {"id", "name", "prompt", "query", "expected_output", "files", "expectations", "expected_behavior"}
_KEYS |= {"assertions", "should_trigger", "skills"}


class Skill:
    """Imports the evals of skills as cases, asked with and without the skill."""

    def read(self, file: Path) -> Imported:
        """Convert the evals of a skill into a suite; `file` is its folder, its `SKILL.md` or its evals."""
        check_exists(file)
        folder = _folder_of(file)
        evals = folder / "evals" / "evals.json"
        with expecting(evals, "the evals of a skill"):
            try:
                document = json.loads(read_text(evals))
            except json.JSONDecodeError as error:
                raise FairtrialError(f"{evals} is not valid JSON: {error}") from None
            entries = document if isinstance(document, list) else document["evals"]
            return _suite(folder, entries)


def _folder_of(file: Path) -> Path:
    for folder in (file, *file.absolute().parents[:2]):
        if (folder / "SKILL.md").is_file():
            return folder
    raise FairtrialError(f"{file} belongs to no skill: name a folder with a SKILL.md and evals/evals.json")


def _suite(folder: Path, entries: list[dict[str, Any]]) -> Imported:
    findings, name = Findings(), folder.resolve().name
    cases = [as_written(_case(folder, name, number, entry, findings)) for number, entry in enumerate(entries, 1)]
    if not cases:
        raise FairtrialError(f"{folder / 'evals' / 'evals.json'} has no evals")
    suite = {
        "name": escape(f"skill-{name}"),
        "targets": [AGENT],
        "conditions": {"without": {}, "with": {"skills": [FileRef(folder)]}},
        "cases": cases,
    }
    differences = ["every eval is asked with and without the skill: `fairtrial tools` says what the skill adds"]
    return Imported(with_judge(suite), findings.listed(), differences)


def _case(folder: Path, skill: str, number: int, entry: dict[str, Any], findings: Findings) -> dict[str, Any]:
    label = str(entry.get("name") or f"eval-{entry.get('id', number)}")
    findings.unknown(entry, _KEYS, "`{}` of evals", label)
    case: dict[str, Any] = {"id": label, "input": str(entry.get("prompt") or entry["query"])}
    files = [path for name in entry.get("files") or () if (path := findings.inside(folder, name, label))]
    if files:
        case["workspace"] = {"files": [FileRef(path) for path in files]}
    if "should_trigger" in entry:
        call = {"name": "Skill", "arguments": {"skill": skill}}
        case["tools"] = [call] if entry["should_trigger"] else []
        return {**case, "scorer": "tool_calls"}
    expected = str(entry.get("expected_output") or "")
    wanted = [_words(one) for one in entry.get("expectations") or entry.get("assertions") or ()]
    wanted += [str(one) for one in entry.get("expected_behavior") or ()]
    if expected:
        case["expected"] = expected
    criteria = [{"name": f"expectation {place}", "description": text} for place, text in enumerate(wanted, 1)]
    about = "The reference describes what a good result is; it is not the answer itself." if expected else ""
    scorer: dict[str, Any] = {"type": "llm_judge"}
    scorer |= {"instructions": about} if about else {}
    return {**case, "scorer": {**scorer, "criteria": criteria} if criteria else scorer}


def _words(expectation: Any) -> str:
    """Return what is expected: a sentence, or an entry that has one."""
    return str(expectation.get("text") or expectation) if isinstance(expectation, dict) else str(expectation)
