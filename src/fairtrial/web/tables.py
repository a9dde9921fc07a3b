"""Cases as tables: taken in from CSV, TSV, JSON and JSON lines, and given out again."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.config import Suite
from fairtrial.config.dataset import rows_of
from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import display_all, escape_all
from fairtrial.reports.csv import cell, uncell

LARGEST = 20 * 2**20
_CASE_KEYS = ("id", "input", "expected", "weight", "tags", "category", "difficulty", "cluster", "scorer")


def read_cases(body: bytes, suffix: str) -> list[dict[str, Any]]:
    """Cases from an uploaded table; columns have the names that cases have."""
    if len(body) > LARGEST:
        raise FairtrialError("that is more than 20 MB: put it beside the suite and name it under `dataset:`")
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
    found = {names.get(str(key).lower(), str(key).lower()): value for key, value in fields.items()}
    if not found.get("input"):
        raise FairtrialError(f"line {line}: a case needs a column `input` (or `question`, or `prompt`)")
    case = given({key: found.get(key) for key in _CASE_KEYS})
    if isinstance(case.get("tags"), str):
        case["tags"] = [tag.strip() for tag in case["tags"].replace(";", ",").split(",") if tag.strip()]
    if isinstance(case.get("weight"), str):
        try:
            case["weight"] = float(case["weight"])
        except ValueError:
            raise FairtrialError(f"line {line}: a weight is a number, not `{case['weight']}`") from None
    if case.get("weight") == 1:
        del case["weight"]
    if isinstance(case.get("scorer"), str) and case["scorer"].startswith("{"):
        try:
            case["scorer"] = msgspec.json.decode(case["scorer"])
        except msgspec.MsgspecError:
            raise FairtrialError(f"line {line}: this scorer cannot be read: `{case['scorer']}`") from None
    case = {key: _unquoted(value) for key, value in case.items()}
    # What comes from a table is text: it must not name a variable.
    escaped: dict[str, Any] = escape_all(case)
    return escaped


def _unquoted(value: Any) -> Any:
    """Without the mark that keeps spreadsheets from taking a text for a formula."""
    return uncell(value) if isinstance(value, str) else value


def table_text(rows: list[dict[str, Any]], ending: str) -> tuple[str, str]:
    """Rows as CSV, JSON or JSON lines, with the media type."""
    if ending == "json":
        return msgspec.json.format(
            msgspec.json.encode([given(row) for row in rows]), indent=2
        ).decode(), "application/json"
    if ending == "jsonl":
        return "".join(msgspec.json.encode(given(row)).decode() + "\n" for row in rows), "application/x-ndjson"
    if ending != "csv":
        raise FairtrialError(f"cases are exported as csv, json or jsonl, not `{ending}`")
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
    """Every case of a suite, also those from its dataset; variables by their names."""
    rows = [{key: getattr(case, key) for key in _CASE_KEYS} for case in suite.cases()]
    return [{key: display_all(suite.variables.template_all(value)) for key, value in row.items()} for row in rows]


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty."""
    return {key: value for key, value in values.items() if value not in ("", None, [], {})}
