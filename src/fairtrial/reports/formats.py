"""The formats that a run can be written in: one row each, for export, command line and web page alike."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from fairtrial.core.errors import FairtrialError


class Format(NamedTuple):
    """A format: the module of `reports/` that writes it, and the endings of file names that ask for it."""

    module: str
    title: str
    endings: tuple[str, ...]
    binary: bool = False


FORMATS = (
    Format("html", "Report, one file that needs nothing else", (".html",)),
    Format("md", "Report as Markdown", (".md",)),
    Format("json", "Everything as JSON", (".json",)),
    Format("jsonl", "One trial a line", (".jsonl",)),
    Format("csv", "One trial a row, for spreadsheets", (".csv",)),
    Format("parquet", "One trial a row, for data frames", (".parquet",), binary=True),
    Format("junit", "Test report for CI", (".junit.xml", ".xml")),
    Format("eee", "Every Eval Ever, the record of one model", (".eee.json",)),
    Format("eee_lines", "Every Eval Ever, a record for each model", (".eee.jsonl",)),
)
ENDINGS = [form.endings[0] for form in FORMATS]


def format_of(path: Path) -> Format:
    """The format that a file's name asks for: the longest ending that fits."""
    name = path.name.lower()
    fitting = [(len(end), form) for form in FORMATS for end in form.endings if name.endswith(end)]
    if not fitting:
        raise FairtrialError(f"{path}: the name must end in one of {', '.join(ENDINGS)}")
    return max(fitting)[1]
