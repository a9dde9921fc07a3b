"""Rows that are given in Python: data frames, Arrow tables, iterators. They are kept in a file and streamed."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.errors import FairtrialError, NotInstalledError

COLUMNS = ("weight", "scorer", "tags", "category", "difficulty", "cluster")  # taken if a row has them
ROW_KEYS = {"input", "expected", "id", *COLUMNS}
_MISSING = ("NAType", "NaTType")  # of pandas, by name: it is never imported


def is_frame(value: Any) -> bool:
    """Return whether a value is a table: of pandas, polars, or anything that speaks Arrow."""
    return hasattr(value, "__arrow_c_stream__") or (hasattr(value, "columns") and hasattr(value, "itertuples"))


def rows_of_frame(frame: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table without importing the library that it comes from."""
    if hasattr(frame, "collect") and not hasattr(frame, "iter_rows"):  # a lazy frame of polars
        frame = frame.collect()
    if hasattr(frame, "iter_rows"):
        yield from frame.iter_rows(named=True)
    elif hasattr(frame, "itertuples"):
        names = [str(name) for name in frame.columns]
        for row in frame.itertuples(index=False, name=None):
            yield dict(zip(names, row, strict=True))
    else:
        try:
            import pyarrow as pa
        except ImportError:
            raise NotInstalledError("a table of this kind", "parquet") from None
        for batch in pa.RecordBatchReader.from_stream(frame):
            yield from batch.to_pylist()


def plain_cell(value: Any) -> Any:
    """Return a cell as plain data; what is missing in a table is None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if type(value).__name__ in _MISSING or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float | datetime | date | time):
        return value if isinstance(value, float) else value.isoformat()
    return _plain_items(value)


def _plain_items(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): plain_cell(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_cell(item) for item in value]
    for method in ("tolist", "to_list"):  # numpy, pandas, polars
        if callable(getattr(value, method, None)):
            return plain_cell(getattr(value, method)())
    return str(value)


class GivenRows:
    """Rows in a file of their own, which is removed with this object."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], plain: Callable[[Any], Any] = plain_cell) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fairtrial-")
        self.file = Path(self._folder.name) / "rows.jsonl"
        self.count = 0
        encode = msgspec.json.encode
        common = dict.fromkeys(COLUMNS)
        with self.file.open("wb") as file:
            for row in rows:
                if not isinstance(row, Mapping):
                    kind = type(row).__name__
                    raise FairtrialError(f"cases must be mappings, ft.Case objects or a table, not {kind}")
                file.write(encode({**common, **{str(key): plain(value) for key, value in row.items()}}) + b"\n")
                self.count += 1

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the rows again."""
        with self.file.open("rb") as file:
            for line in file:
                yield msgspec.json.decode(line)
