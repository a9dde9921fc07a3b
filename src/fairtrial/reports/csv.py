"""CSV: one trial per row, for spreadsheets."""

from __future__ import annotations

import csv
import re
from typing import IO, Any

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.reports.json import trial_document

_NUMBER = re.compile(r"[-+]?[0-9.,]+([eE][-+]?[0-9]+)?%?")
# A formula may begin at the start of a text, and after a character that some spreadsheets take for the end of a cell
# or row, quoted or not. A dash before a space begins a list item, not a formula. An existing mark gets one more.
_FORMULA = r"(?='*(?:[=+@]|-(?! )))"
_BEGINNING = re.compile(r"(?:^|[;\t\r\n])[ \"]*" + _FORMULA)
_MARKED = re.compile(r"((?:^|[;\t\r\n])[ \"]*)'" + _FORMULA)
_ODD_START = re.compile(r"'*[-\t\r]")
_SUSPECT = re.compile(r"[=+@\-\t\r]")  # most texts have none of these, and need no closer look


def write(run: Run, file: IO[str]) -> None:
    """Write every trial, streamed."""
    columns = ["run_id", *TrialRecord.__struct_fields__]
    writer = csv.DictWriter(file, columns, quoting=csv.QUOTE_NONNUMERIC)  # some programs take `;` for the end of a cell
    writer.writeheader()
    for trial in run.trials():
        fields = {"run_id": run.id, **trial_document(trial)}
        writer.writerow({name: cell(value) for name, value in fields.items()})


def cell(value: Any) -> Any:
    """Return a value that is safe to open in a spreadsheet."""
    if isinstance(value, (list, tuple, dict)):
        return msgspec.json.encode(value).decode() if value else ""
    if not isinstance(value, str) or not _SUSPECT.search(value) or _NUMBER.fullmatch(value):
        return value
    # Text from a model must not become a formula in a spreadsheet.
    marked = _BEGINNING.sub(r"\g<0>'", value)
    return f"'{marked}" if _ODD_START.match(value) and not _BEGINNING.match(value) else marked


def uncell(text: str) -> str:
    """Return the original text of a cell made by `cell`."""
    for plain in (_MARKED.sub(r"\1", text), _MARKED.sub(r"\1", text[1:])):
        if cell(plain) == text:
            return plain
    return text
