"""Tables in files, one format per file: rows are streamed, with their lines, and never held in memory all at once.

Every format is a function `rows(path, options)` that yields `Row`s and raises `TableError` for what cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from fairtrial.core.errors import NotInstalledError
from fairtrial.tables.row import Row, TableError, TableOptions
from fairtrial.tables.text import undecodable

__all__ = ["FORMATS", "Row", "TableOptions", "format_of", "misplaced_options", "missing_extra", "rows_of"]

_MODULES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}
_EXTRAS = {"parquet": ("pyarrow", "parquet"), "xlsx": ("python_calamine", "xlsx")}
_PACKED = ".gz"
_TEXT = ("csv", "jsonl", "json")  # formats that may be packed, and that have an encoding
_APPLIES = {  # the formats that an option is for
    "delimiter": ("csv",),
    "quote": ("csv",),
    "encoding": _TEXT,
    "records": ("json",),
    "sheet": ("xlsx",),
}
FORMATS = tuple(_MODULES)


def format_of(path: Path) -> str | None:
    """Return the format of a file by its name, such as `csv` for x.csv and x.csv.gz; None if it is none of them."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [_PACKED]
    name = _MODULES.get("".join(suffixes[-2:-1] if packed else suffixes[-1:]))
    return None if packed and name not in _TEXT else name


def missing_extra(path: Path) -> str | None:
    """Return which extra a format needs, as a sentence, if it is not installed."""
    module, extra = _EXTRAS.get(format_of(path) or "", ("", ""))
    if not module:
        return None
    try:
        import_module(module)
    except ImportError:
        return str(NotInstalledError(f"reading {path.name}", extra))
    return None


def misplaced_options(path: Path, options: TableOptions) -> Iterator[tuple[str, str]]:
    """Yield (option, reason) for options that the file's format does not have."""
    for name, formats in _APPLIES.items():
        if getattr(options, name) is not None and format_of(path) not in formats:
            endings = [ending for ending, module in _MODULES.items() if module in formats]
            yield name, f"`{name}` applies to {', '.join(endings)} files, not to `{path.name}`"


def rows_of(path: Path, options: TableOptions | None = None) -> Iterator[Row]:
    """Yield every row of a table with its line number; an unreadable row has the reason instead of fields."""
    options = options or TableOptions()
    module = import_module(f"fairtrial.tables.{format_of(path) or 'jsonl'}")
    try:
        yield from module.rows(path, options)
    except TableError as error:
        yield Row(error.line, {}, str(error))
    except UnicodeError as error:
        found = undecodable(error) if isinstance(error, UnicodeDecodeError) else "the file is not text in its encoding"
        yield Row(0, {}, str(found))
    except OSError as error:
        yield Row(0, {}, f"the file cannot be read: {error.strerror or error}")
