"""Vectors and matrices from CSV files."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np

from fairtrial.tracks.optimisation.problem import Floats

_MAX_BYTES = 100_000_000
_CELLS = re.compile(r"\s*[,;\t]\s*|\s+")


class MatrixError(ValueError):
    """A file has no vector or matrix; `line` is where."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def read_numbers(path: Path) -> Floats:
    """Return a matrix, or a vector if there is only one row or column. A first line without numbers is a header."""
    rows: list[list[float]] = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        cells = _CELLS.split(line.strip())
        values = [_number(cell) for cell in cells]
        if cells == [""] or (number == 1 and all(value is None for value in values)):
            continue
        rows.append([_required(value, cell, number) for cell, value in zip(cells, values, strict=True)])
        if len(cells) != len(rows[0]):
            raise MatrixError(f"has {len(cells)} numbers, and the first row has {len(rows[0])}", number)
    if not rows:
        raise MatrixError("has no numbers")
    matrix = np.asarray(rows, dtype=np.float64)
    return matrix.ravel() if 1 in matrix.shape else matrix


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise MatrixError(f"is larger than {_MAX_BYTES // 1_000_000} MB")
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise MatrixError("there is no such file") from None
    except UnicodeDecodeError:
        raise MatrixError("is not a UTF-8 text file") from None
    except OSError as error:
        raise MatrixError(f"cannot be read: {error.strerror}") from None


def _required(value: float | None, cell: str, line: int) -> float:
    if value is None:
        raise MatrixError(f"`{cell[:20]}` is not a number", line)
    return value


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
