"""Parquet: one trial a row, typed, for data frames and databases."""

from __future__ import annotations

from itertools import islice
from typing import IO, Any

import msgspec

from fairtrial.analyse import Run, TrialRecord
from fairtrial.core.errors import NotInstalledError
from fairtrial.reports.json import trial_document

_BATCH = 5000


def write(run: Run, file: IO[bytes]) -> None:
    """Every trial, streamed in row groups."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise NotInstalledError("a Parquet file", "parquet") from None
    schema = _schema(pa)
    trials = run.trials()
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while batch := list(islice(trials, _BATCH)):
            rows = [_row(run.id, trial) for trial in batch]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))


def _schema(pa: Any) -> Any:
    """From the record itself: a new field is a new column. What has no fixed shape is JSON."""
    plain = {"str": pa.string(), "float": pa.float64(), "int": pa.int64(), "bool": pa.bool_()}
    columns = [("run_id", pa.string())]
    for name, kind in TrialRecord.__annotations__.items():
        known = kind.removesuffix(" | None")
        texts = known in ("tuple[str, ...]", "list[str]")
        columns.append((name, pa.list_(pa.string()) if texts else plain.get(known, pa.string())))
    return pa.schema(columns)


def _row(run_id: str, trial: TrialRecord) -> dict[str, Any]:
    found: dict[str, Any] = {"run_id": run_id, **trial_document(trial)}
    for name, value in found.items():
        if isinstance(value, dict):
            found[name] = msgspec.json.encode(value).decode()
        elif isinstance(value, tuple):
            found[name] = list(value) if name == "tags" else msgspec.json.encode(value).decode()
    return found
