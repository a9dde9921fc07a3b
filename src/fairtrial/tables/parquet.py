"""`.parquet`: read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairtrial.core.errors import NotInstalledError
from fairtrial.tables.row import Row, TableError, TableOptions, depth_problem, plain

_BATCH = 1000
MAX_GROUP = 4 * 2**30  # bytes of a row group, unpacked


def rows(path: Path, options: TableOptions) -> Iterator[Row]:
    """Yield the rows of a Parquet file; numbers count them."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise NotInstalledError(f"reading {path.name}", "parquet") from None
    number = 0
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            _check(file)
            for batch in file.iter_batches(batch_size=_BATCH, use_threads=False):
                for fields in batch.to_pylist():
                    number += 1
                    cells = {name: plain(cell) for name, cell in fields.items()}
                    yield Row(number, cells, depth_problem(cells))
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, TableError) or getattr(error, "errno", None) is not None:
            raise
        reason = str(error).partition("\n")[0]
        raise TableError(f"the Parquet file cannot be read: {reason}", number + 1) from None


def _check(file: Any) -> None:
    names = file.schema_arrow.names
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise TableError(f"duplicate columns: {', '.join(duplicates)}")
    sizes = (file.metadata.row_group(number).total_byte_size for number in range(file.metadata.num_row_groups))
    if max(sizes, default=0) > MAX_GROUP:
        raise TableError(f"a row group unpacks to more than {MAX_GROUP // 2**30} GB: write the file in smaller ones")
