"""Parquet: one typed row per trial, for data frames and databases."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import IO, Any

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.core.errors import NotInstalledError
from fairtrial.reports.json import trial_document

_BATCH = 5000


def write(run: Run, file: IO[bytes]) -> None:
    """Write every trial, streamed in row groups."""
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
    """Build the schema from TrialRecord: a new field becomes a new column, and values of no fixed type become JSON."""
    types = {"str": pa.string(), "float": pa.float64(), "int": pa.int64(), "bool": pa.bool_()}
    columns: list[tuple[str, Any]] = [("run_id", pa.string())]
    for name, kind in TrialRecord.__annotations__.items():
        type_name = kind.removesuffix(" | None")
        is_text_list = type_name in ("tuple[str, ...]", "list[str]")
        columns.append((name, pa.list_(pa.string()) if is_text_list else types.get(type_name, pa.string())))
    times = {"started_at": pa.timestamp("ms", tz="UTC")}
    return pa.schema([(name, times.get(name, kind)) for name, kind in columns])


def _row(run_id: str, trial: TrialRecord) -> dict[str, Any]:
    started_at = datetime.fromtimestamp(trial.started_at, UTC)
    row: dict[str, Any] = {"run_id": run_id, **trial_document(trial), "started_at": started_at}
    for name, value in row.items():
        if isinstance(value, dict):
            row[name] = msgspec.json.encode(value).decode()
        elif isinstance(value, tuple):
            row[name] = list(value) if name == "tags" else msgspec.json.encode(value).decode()
    return row
