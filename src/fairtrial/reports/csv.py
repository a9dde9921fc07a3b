"""CSV: one trial a row, for spreadsheets."""

from __future__ import annotations

import csv
import re
from typing import IO, Any

import msgspec

from fairtrial.analyse import Run, TrialRecord
from fairtrial.reports.json import trial_document

_NUMBER = re.compile(r"[-+]?[0-9.,]+([eE][-+]?[0-9]+)?%?")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write(run: Run, file: IO[str]) -> None:
    """Every trial, streamed."""
    columns = ["run_id", *TrialRecord.__struct_fields__]
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    for trial in run.trials():
        fields = {"run_id": run.id, **trial_document(trial)}
        writer.writerow({name: cell(value) for name, value in fields.items()})


def cell(value: Any) -> Any:
    """A value as a spreadsheet may see it."""
    if isinstance(value, list | tuple | dict):
        return msgspec.json.encode(value).decode() if value else ""
    if isinstance(value, str) and value.startswith(_FORMULA) and not _NUMBER.fullmatch(value):
        return f"'{value}"  # what a model wrote must not become a formula in somebody's spreadsheet
    return value
