"""Write a run to a file, in the format given by the file's extension."""

from __future__ import annotations

import importlib
import os
from io import TextIOWrapper
from pathlib import Path

from fairtrial.analyse import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.reports.formats import format_of


def export(run: Run, path: str | Path) -> Path:
    """Write a run to a file; on failure, leave no partial file."""
    path = Path(path)
    form = format_of(path)
    module = importlib.import_module(f"fairtrial.reports.{form.module}")
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            if form.binary:
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
