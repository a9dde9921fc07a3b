"""Write a run to a file or a stream, in the format that is named or given by the file's extension."""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from fairtrial.analyse import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.reports.formats import Format, format_of


def export(run: Run, path: str | Path, form: Format | None = None) -> Path:
    """Write a run to a file; on failure, leave no partial file."""
    path = Path(path)
    form = form or format_of(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            write(run, form, file)
        partial.replace(path)
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)
    return path


def write(run: Run, form: Format, file: IO[bytes]) -> None:
    """Write a run to an open file or a pipe, trial by trial where the format allows it."""
    if form.binary:
        _module(form).write(run, file)
        return
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        write_text(run, form, text)
        text.flush()
    finally:
        with suppress(OSError):  # of a closed pipe
            text.detach()  # the file is its owner's to close


def write_text(run: Run, form: Format, file: IO[str]) -> None:
    """Write a run as text, in a format that is not binary."""
    _module(form).write(run, file)


def _module(form: Format) -> Any:
    return importlib.import_module(f"fairtrial.reports.{form.module}")
