"""Write a run to a file or a stream, in the format that is named or given by the file's extension."""

from __future__ import annotations

import importlib
import os
import tempfile
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import make_private, replace_private, replacing
from fairtrial.reports.format import Format
from fairtrial.reports.formats import format_of


def export(run: Run, path: str | Path, form: Format | None = None) -> Path:
    """Write a run to a file, or to a folder if the format has several files; on failure, leave no partial file."""
    if form is not None and is_folder(path):
        return _export_folder(run, Path(path), form)
    path = Path(path)
    form = form or format_of(path)
    try:
        with replacing(path) as file:
            write(run, form, file)
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


def is_folder(path: str | Path) -> bool:
    """Return whether a path is meant as a folder: it is one, or ends in a slash."""
    return str(path).endswith(("/", os.sep)) or Path(path).is_dir()


def _export_folder(run: Run, folder: Path, form: Format) -> Path:
    if not form.folder:
        raise FairtrialError(f"{folder} is a folder, and {form.title} is one file: name the file")
    try:
        make_private(folder)
        with tempfile.TemporaryDirectory(prefix=".fairtrial-", dir=folder) as unfinished:
            _module(form).write_folder(run, Path(unfinished))
            for file in sorted(path for path in Path(unfinished).rglob("*") if path.is_file()):
                place = folder / file.relative_to(unfinished)
                make_private(place.parent)
                replace_private(file, place)
    except OSError as error:
        raise FairtrialError(f"{folder} cannot be written: {error.strerror or error}") from None
    return folder


def send(run: Run, form: Format, address: str | None = None) -> str:
    """Send a run to a service, by default the one that is configured; return where it can be seen."""
    return str(_module(form).send(run, address))


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
    return importlib.import_module(f"{form.home}.{form.module}")
