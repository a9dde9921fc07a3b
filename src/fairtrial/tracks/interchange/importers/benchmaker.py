"""Import from `benchmaker`: test suites (JSON), and lists of test cases (JSON and CSV)."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import escape
from fairtrial.foreign.suites import NO_JUDGE, Imported, expecting, read_text

_SCORERS = {
    "exact-match": "exact",
    "regex-match": "regex",
    "numeric-tolerance": "numeric",
    "boolean": "boolean",
    "llm-judge": "llm_judge",
}
_SUITE_KEYS = {"id", "name", "description", "systemPrompt", "judgeSystemPrompt", "testCases", "createdAt", "updatedAt"}
_CASE_KEYS = {"id", "prompt", "expectedOutput", "scoringMethod", "weight", "metadata", "category", "difficulty", "tags"}
_DEFAULTS = {"temperature": 0.7, "top_p": 1, "max_tokens": 2048, "frequency_penalty": 0, "presence_penalty": 0}


class Benchmaker:
    """Imports Benchmaker files."""

    def read(self, file: Path) -> Imported:
        """Convert a Benchmaker file into a suite."""
        with expecting(file, "a Benchmaker suite"):
            return self._read(file)

    def _read(self, file: Path) -> Imported:
        text = read_text(file)
        data = _read_csv(text) if file.suffix.lower() == ".csv" else _read_json(text, file)
        findings: list[str] = []
        suite: dict[str, Any] = data if isinstance(data, dict) and "testCases" in data else {"testCases": data}
        if isinstance(suite["testCases"], dict):
            suite["testCases"] = [suite["testCases"]]
        if not isinstance(suite["testCases"], list):
            raise FairtrialError(f"{file} is not a Benchmaker file: it has no list of test cases")
        findings += [f"suite key `{key}`" for key in sorted(set(suite) - _SUITE_KEYS)]
        result: dict[str, Any] = {"name": suite.get("name") or file.stem}
        if suite.get("description"):
            result["description"] = escape(suite["description"])
        result |= {
            "targets": ["mock:echo"],
            "params": dict(_DEFAULTS),
            "scorer": "exact",
        }
        if suite.get("systemPrompt"):
            result["system"] = escape(suite["systemPrompt"])
        result["cases"] = [_case(case, number, findings) for number, case in enumerate(suite["testCases"], 1)]
        if any(case.get("scorer") == "llm_judge" for case in result["cases"]):
            instructions = escape(str(suite.get("judgeSystemPrompt") or ""))
            result["judge"] = {"target": NO_JUDGE, **({"instructions": instructions} if instructions else {})}
            findings.append(f"the judge's model: replace `{NO_JUDGE}` under judge")
        elif suite.get("judgeSystemPrompt"):
            findings.append("judgeSystemPrompt: no case in this suite uses a judge")
        findings.append("the models: Benchmaker selects them in its arena; replace `mock:echo` under targets")
        return Imported(result, findings)


def _read_json(text: str, file: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise FairtrialError(f"{file} is not valid JSON: {error}") from None


def _read_csv(text: str) -> list[dict[str, Any]]:
    """Return the rows under the key names of the JSON format; Benchmaker ignores the case of CSV headers."""
    names = {key.lower(): key for key in _CASE_KEYS}
    rows = []
    for row in csv.DictReader(io.StringIO(text, newline="")):
        case: dict[str, Any] = {
            names.get(key.strip().lower(), key): value for key, value in row.items() if key and value
        }
        if "tags" in case:
            case["tags"] = [tag for tag in case["tags"].split(";") if tag]
        rows.append(case)
    return rows


def _case(case: Any, number: int, findings: list[str]) -> dict[str, Any]:
    if not isinstance(case, dict):
        raise FairtrialError(f"test case {number} is not an object")
    findings += [f"key `{key}` of test case {number}" for key in sorted(set(case) - _CASE_KEYS)]
    metadata = case.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        findings.append(f"metadata of test case {number}: {metadata!r}")
    metadata = {**case, **(metadata if isinstance(metadata, dict) else {})}
    result: dict[str, Any] = {
        "id": str(case.get("id") or f"case-{number}"),
        "input": escape(str(case.get("prompt") or "")),
    }
    if case.get("expectedOutput") not in (None, ""):
        result["expected"] = escape(str(case["expectedOutput"]))
    if scorer := _scorer(case, number, findings):
        result["scorer"] = scorer
    weight = _number(case.get("weight"))
    if weight != 1:
        result["weight"] = weight
    for key in ("category", "difficulty"):
        if metadata.get(key):
            result[key] = str(metadata[key])
    if metadata.get("tags"):
        tags = metadata["tags"]
        result["tags"] = [str(tag) for tag in (tags.split(";") if isinstance(tags, str) else tags) if tag]
    if extra := {key: value for key, value in metadata.items() if key not in _CASE_KEYS and key not in case}:
        result["metadata"] = extra
    return result


def _scorer(case: dict[str, Any], number: int, findings: list[str]) -> Any:
    """Return a case's own scorer, or None if the suite's scorer fits."""
    method = case.get("scoringMethod") or "exact-match"
    if method not in _SCORERS:
        findings.append(f"scoring method `{method}` of test case {number}: `boolean` is used until you choose a scorer")
    scorer = _SCORERS.get(method, "boolean")
    if scorer not in ("exact", "boolean"):
        return scorer
    if not str(case.get("expectedOutput", "") or "").strip() and case.get("expectedOutput") != 0:
        findings.append(
            f"a check in test case {number}: it has no expected output, so every answer passes, as in Benchmaker"
        )
        return {"type": "boolean", "pass_if_blank": True}
    return {"type": "boolean", "words": False} if scorer == "boolean" else None  # Benchmaker matches parts of words too


def _number(value: Any) -> float:
    try:
        number = float(value if value not in (None, "") else 1)
    except (TypeError, ValueError):
        return 1.0
    if not math.isfinite(number) or number < 0:
        return 1.0
    return int(number) if number == int(number) else number
