"""Rows of a data frame, without knowing its library: pandas, Polars, anything with Arrow's stream, or plain rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fairtrial.core.errors import FairtrialError, NotInstalledError
from fairtrial.core.ids import canonical_json
from fairtrial.foreign.results import Columns, Log
from fairtrial.tables.row import plain
from fairtrial.tracks.interchange.results.table import Rows

_ARROW = "__arrow_c_stream__"


def is_frame(data: Any) -> bool:
    """Return whether this is a table in memory, not a path or a list of paths."""
    if isinstance(data, str | Path):
        return False
    if hasattr(data, _ARROW) or hasattr(data, "itertuples") or hasattr(data, "iter_rows"):
        return True
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(row, Mapping) for row in data)


def frame_log(frame: Any, columns: Columns) -> Log:
    """Return a data frame as a log; its content is its identity."""
    log = Rows("the data frame", lambda: _rows(frame), columns).log()
    log.name = "frame"
    digest = hashlib.sha256()
    for row in _rows(frame):
        digest.update(canonical_json(row))
    log.part = digest.hexdigest()
    return log


def _rows(frame: Any) -> Iterator[dict[str, Any]]:
    for row in _raw_rows(frame):
        yield {str(name): _plain(value) for name, value in row.items()}


def _raw_rows(frame: Any) -> Iterable[Mapping[str, Any]]:
    if hasattr(frame, "iter_rows"):  # Polars
        return frame.iter_rows(named=True)  # type: ignore[no-any-return]
    if hasattr(frame, "itertuples"):  # pandas
        if any(name is not None for name in frame.index.names):
            frame = frame.reset_index()
        names = list(frame.columns)
        return (dict(zip(names, row, strict=True)) for row in frame.itertuples(index=False, name=None))
    if hasattr(frame, _ARROW):
        return _arrow_rows(frame)
    if isinstance(frame, list | tuple):
        return frame
    raise FairtrialError("give a file, a folder, a data frame, or a list of rows")


def _arrow_rows(frame: Any) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow as pa
    except ImportError:
        raise NotInstalledError("reading Arrow tables", "parquet") from None
    for batch in pa.RecordBatchReader.from_stream(frame):
        yield from batch.to_pylist()


def _plain(value: Any) -> Any:
    """Return a cell as a plain value; numbers of numpy know themselves as Python's."""
    item = getattr(value, "item", None)
    try:
        return plain(item() if callable(item) else value)
    except (TypeError, ValueError):
        return str(value)
