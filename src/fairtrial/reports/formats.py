"""The export formats, one row each, shared by the command line, the web interface and `export`."""

from __future__ import annotations

from pathlib import Path

from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.reports.format import Format

OWN = (
    Format("html", "Report as one self-contained file", (".html",)),
    Format("md", "Report as Markdown", (".md",)),
    Format("json", "Everything as JSON", (".json",)),
    Format("jsonl", "One trial per line", (".jsonl",)),
    Format("csv", "One trial per row, for spreadsheets", (".csv",)),
    Format("parquet", "One trial per row, for data frames", (".parquet",), binary=True),
    Format("junit", "Test report for CI", (".junit.xml", ".xml")),
)
_OTHERS: list[Format] = list(registry.parts("reports", {form.module for form in OWN}).values())
FORMATS = (*OWN, *(form for form in _OTHERS if form.endings))
SERVICES = tuple(form for form in _OTHERS if not form.endings)
ENDINGS = [form.endings[0] for form in FORMATS]
NAMES = [*(ending.removeprefix(".") for ending in ENDINGS), *(form.module for form in SERVICES)]


def format_named(name: str) -> Format:
    """Return the format with this name: one of its extensions, with or without the dot, or its short name."""
    wanted = name.lower().removeprefix(".")
    for form in (*FORMATS, *SERVICES):
        if wanted == form.module or f".{wanted}" in form.endings:
            return form
    raise FairtrialError(f"there is no format `{name}`; the formats are {', '.join(NAMES)}")


def format_of(path: Path) -> Format:
    """Return the format for a file name; the longest matching extension wins."""
    name = path.name.lower()
    matching = [(len(end), form) for form in FORMATS for end in form.endings if name.endswith(end)]
    if not matching:
        raise FairtrialError(f"{path}: the file name must end in one of {', '.join(ENDINGS)}")
    return max(matching, key=lambda match: match[0])[1]  # of two, the one that comes with fairtrial
