"""Writing a run to a file; the file's name says in which format."""

from __future__ import annotations

import importlib
import os
from io import TextIOWrapper
from pathlib import Path

from fairtrial.analyse import Run
from fairtrial.core.errors import FairtrialError

# Longest ending first: `.junit.xml` before `.xml`.
_ENDINGS = {
    ".junit.xml": "junit",
    ".eee.json": "eee",
    ".eee.jsonl": "eee_lines",
    ".xml": "junit",
    ".json": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".md": "md",
    ".html": "html",
    ".parquet": "parquet",
}


def format_of(path: Path) -> str:
    """The format that a file's name asks for."""
    for ending, name in _ENDINGS.items():
        if path.name.lower().endswith(ending):
            return name
    raise FairtrialError(f"{path}: the name must end in one of {', '.join(_ENDINGS)}")


def export(run: Run, path: str | Path) -> Path:
    """Write a run to a file, whole or not at all."""
    path = Path(path)
    module = importlib.import_module(f"fairtrial.reports.{format_of(path)}")
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            if getattr(module, "BINARY", False):
                module.write(run, file)
            else:
                with TextIOWrapper(file, encoding="utf-8", newline="") as text:
                    module.write(run, text)
        partial.replace(path)
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)
    return path
