"""The report on prompt styles as a file, one format per module: each has `render(report)`, which returns the text."""

from __future__ import annotations

import importlib
from pathlib import Path

from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import replacing
from fairtrial.tracks.optimisation.analysis import OptimisationReport

TITLES = {"html": "HTML", "md": "Markdown", "tex": "LaTeX", "csv": "CSV", "json": "JSON"}


def check_style_outputs(paths: tuple[str, ...]) -> None:
    """Raise an error if a file has no known extension or its folder does not exist."""
    for path in map(Path, paths):
        if _form(path) not in TITLES:
            raise FairtrialError(f"{path}: the file name must end in one of .{', .'.join(TITLES)}")
        if not path.parent.is_dir():
            raise FairtrialError(f"{path} cannot be written: the folder {path.parent} does not exist")


def _form(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def render_styles(report: OptimisationReport, form: str) -> str:
    """Return the report in a format: html, md, tex, csv or json."""
    text: str = importlib.import_module(f"fairtrial.tracks.optimisation.reports.{form}").render(report)
    return text


def write_styles(report: OptimisationReport, path: Path) -> None:
    """Write the report in the format of the file's extension; on failure, leave no partial file."""
    check_style_outputs((str(path),))
    try:
        with replacing(path) as file:
            file.write(render_styles(report, _form(path)).encode())
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror or error}") from None
