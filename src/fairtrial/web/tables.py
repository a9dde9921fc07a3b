"""Cases as tables: import from CSV, TSV, JSON and JSON lines, and export."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.config import Suite
from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import display_all, escape_all
from fairtrial.reports.csv import cell, uncell
from fairtrial.tables import rows_of

MAX_BYTES = 20 * 2**20
_CASE_KEYS = ("id", "input", "expected", "weight", "tags", "category", "difficulty", "cluster", "scorer")


def read_cases(body: bytes, suffix: str) -> list[dict[str, Any]]:
    """Read cases from an uploaded table, whose columns are named like the keys of a case."""
    if len(body) > MAX_BYTES:
        raise FairtrialError("the file is larger than 20 MB: put it next to the suite and name it under `dataset:`")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"cases{suffix}"
        path.write_bytes(body)
        cases = []
        for row in rows_of(path):
            if row.problem:
                raise FairtrialError(f"line {row.line}: {row.problem}")
            cases.append(_case(row.fields, row.line))
    if not cases:
        raise FairtrialError("there is no case in this file")
    return cases


def _case(fields: dict[str, Any], line: int) -> dict[str, Any]:
    names = {"question": "input", "prompt": "input", "answer": "expected", "golden_answer": "expected"}
    values = {names.get(str(key).lower(), str(key).lower()): value for key, value in fields.items()}
    if not values.get("input"):
        raise FairtrialError(f"line {line}: a case needs a column `input` (or `question`, or `prompt`)")
    case = without_empty({key: values.get(key) for key in _CASE_KEYS})
    if isinstance(case.get("tags"), str):
        case["tags"] = [tag.strip() for tag in case["tags"].replace(";", ",").split(",") if tag.strip()]
    if isinstance(case.get("weight"), str):
        try:
            case["weight"] = float(case["weight"])
        except ValueError:
            raise FairtrialError(f"line {line}: the weight must be a number, not `{case['weight']}`") from None
    if case.get("weight") == 1:
        del case["weight"]
    if isinstance(case.get("scorer"), str) and case["scorer"].startswith("{"):
        try:
            case["scorer"] = msgspec.json.decode(case["scorer"])
        except msgspec.MsgspecError:
            raise FairtrialError(f"line {line}: cannot parse this scorer: `{case['scorer']}`") from None
    case = {key: _unescape_formula(value) for key, value in case.items()}
    # Values from a table are plain text: they must not refer to variables.
    escaped: dict[str, Any] = escape_all(case)
    return escaped


def _unescape_formula(value: Any) -> Any:
    """Remove the mark that keeps spreadsheets from reading a text as a formula."""
    return uncell(value) if isinstance(value, str) else value


def table_text(rows: list[dict[str, Any]], ending: str) -> tuple[str, str]:
    """Return rows as CSV, JSON or JSON lines, and the media type."""
    if ending == "json":
        return msgspec.json.format(
            msgspec.json.encode([without_empty(row) for row in rows]), indent=2
        ).decode(), "application/json"
    if ending == "jsonl":
        return "".join(msgspec.json.encode(without_empty(row)).decode() + "\n" for row in rows), "application/x-ndjson"
    if ending != "csv":
        raise FairtrialError(f"cases can be exported as csv, json or jsonl, not `{ending}`")
    out = io.StringIO()
    writer = csv.DictWriter(out, _CASE_KEYS, quoting=csv.QUOTE_NONNUMERIC)
    writer.writeheader()
    for row in rows:
        flat = {
            key: ", ".join(value) if isinstance(value, list) and key == "tags" else value for key, value in row.items()
        }
        writer.writerow({key: cell(value) for key, value in flat.items()})
    return out.getvalue(), "text/csv"


def case_rows(suite: Suite) -> list[dict[str, Any]]:
    """Return every case of a suite, including its dataset, with variables by name."""
    rows = [{key: getattr(case, key) for key in _CASE_KEYS} for case in suite.cases()]
    return [{key: display_all(suite.variables.template_all(value)) for key, value in row.items()} for row in rows]


def without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping without its empty values."""
    return {key: value for key, value in values.items() if value not in ("", None, [], {})}
