"""The export formats, one row each, shared by the command line, the web interface and `export`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from fairtrial.core.errors import FairtrialError


class Format(NamedTuple):
    """An export format: the module in `reports/` that writes it, and its file extensions.

    A module has `write(run, file)`. With `folder`, it also has `write_folder(run, folder)`; a service has
    `send(run, address)` alone, which returns where the run can be seen.
    """

    module: str
    title: str
    endings: tuple[str, ...]
    binary: bool = False
    folder: bool = False


FORMATS = (
    Format("html", "Report as one self-contained file", (".html",)),
    Format("md", "Report as Markdown", (".md",)),
    Format("json", "Everything as JSON", (".json",)),
    Format("jsonl", "One trial per line", (".jsonl",)),
    Format("csv", "One trial per row, for spreadsheets", (".csv",)),
    Format("parquet", "One trial per row, for data frames", (".parquet",), binary=True),
    Format("junit", "Test report for CI", (".junit.xml", ".xml")),
    Format("inspect", "inspect-ai log, for a run with one arm", (".eval",), binary=True, folder=True),
    Format("inspect_json", "inspect-ai log as JSON, for a run with one arm", (".inspect.json",)),
    Format("eee", "Every Eval Ever, for a run with one model", (".eee.json",), folder=True),
    Format("eee_lines", "Every Eval Ever, one record per model", (".eee.jsonl",)),
)
SERVICES = (
    Format("mlflow", "MLflow, one run per arm", ()),
    Format("wandb", "Weights & Biases, one run per arm", ()),
)
SINGLE = {"inspect": "arm", "inspect_json": "arm", "eee": "target"}  # what a file of these formats holds one of
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
    return max(matching)[1]
