"""Cases from data files. They are streamed: the file is read again each time and never held in memory."""

from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairtrial.config.document import DatasetEntry
from fairtrial.core.experiment import Case, read_expected

FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_COLUMNS = ("input", "expected", "id", "weight", "scorer", "tags", "category", "difficulty", "cluster")
_REST = "\0rest"  # cannot be the name of a column
_BOM = b"\xef\xbb\xbf"
csv.field_size_limit(sys.maxsize)


class Row(NamedTuple):
    """One row of a table, or the reason why it cannot be read."""

    line: int
    fields: dict[str, Any]
    problem: str = ""


class Dataset:
    """A data file, and the meaning of its columns."""

    def __init__(self, entry: DatasetEntry, folder: Path, wanted: Collection[str] = ()) -> None:
        """`wanted` are the names that the suite's templates use; other columns with a meaning are not kept twice."""
        self.entry, self._wanted = entry, wanted
        self.path = folder / entry.path
        defaults = (name for name in ("id", "expected") if getattr(entry, name) is None)
        self._used = {*defaults, *(getattr(entry, name) for name in _COLUMNS)}

    def sha256(self) -> str:
        """Return the SHA-256 of the file's bytes."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def cases(self, first: int) -> Iterator[tuple[int, Case | None, str]]:
        """Yield (line, case, problem) for every row; positions start at `first`."""
        for offset, row in enumerate(rows_of(self.path)):
            if row.problem:
                yield row.line, None, row.problem
                continue
            try:
                yield row.line, self._case(row.fields, first + offset), ""
            except ValueError as error:
                yield row.line, None, str(error)

    def _case(self, fields: dict[str, Any], position: int) -> Case:
        entry = self.entry
        prompt = _text(fields.get(entry.input))
        if prompt is None:
            raise ValueError(f"no column `{entry.input}` (columns: {', '.join(map(str, fields))})")
        case_id = self._optional(fields, entry.id, default="id")
        scorer = self._optional(fields, entry.scorer)
        return Case(
            id=_text(case_id) or f"row-{position + 1}",
            input=prompt,
            expected=read_expected(self._optional(fields, entry.expected, default="expected")),
            weight=_weight(self._optional(fields, entry.weight)),
            tags=_tags(self._optional(fields, entry.tags)),
            category=_text(self._optional(fields, entry.category)),
            difficulty=_text(self._optional(fields, entry.difficulty)),
            cluster=_text(self._optional(fields, entry.cluster)),
            scorer=_scorer(scorer) if scorer else None,
            metadata=self._metadata(fields),
            position=position,
            vars={name: fields[name] for name in self._wanted if name in self._used and name in fields},
        )

    def _metadata(self, fields: dict[str, Any]) -> dict[str, Any] | None:
        """Return the columns without a meaning here; they stay with the case and are exported."""
        unused = {name: value for name, value in fields.items() if name not in self._used}
        return {"columns": unused} if unused else None

    def _optional(self, fields: dict[str, Any], column: str | None, default: str | None = None) -> Any:
        """Return a column's value; a column named in the suite must exist, the default one may be missing."""
        if column is None:
            return fields.get(default) if default else None
        if column not in fields:
            raise ValueError(f"no column `{column}` (columns: {', '.join(map(str, fields))})")
        return fields[column]


def rows_of(path: Path) -> Iterator[Row]:
    """Yield every row of a table with its line number; an unreadable row has the reason instead of fields."""
    try:
        yield from _read_rows(path)
    except UnicodeDecodeError:
        yield Row(0, {}, "the file is not a UTF-8 text file")
    except csv.Error as error:
        yield Row(0, {}, f"the table cannot be read: {error}")
    except OSError as error:
        yield Row(0, {}, f"the file cannot be read: {error.strerror}")


def _read_rows(path: Path) -> Iterator[Row]:
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        yield from _table_rows(path, "\t" if suffix == ".tsv" else ",")
    elif suffix == ".json":
        yield from _json_rows(path)
    else:
        yield from _jsonl_rows(path)


def _table_rows(path: Path, delimiter: str) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        # Strict: an unclosed quote is an error instead of silently swallowing the rest of the file.
        reader = csv.DictReader(file, delimiter=delimiter, restkey=_REST, strict=True)
        names = list(reader.fieldnames or ())
        duplicates = sorted({name for name in names if names.count(name) > 1})
        if duplicates:
            yield Row(1, {}, f"duplicate columns in the header: {', '.join(duplicates)}")
            return
        for fields in reader:
            yield Row(reader.line_num, fields, _wrong_width(fields))


def _wrong_width(fields: dict[str, Any]) -> str:
    if _REST in fields:
        return "more fields than columns in the header"
    return "fewer fields than columns in the header" if None in fields.values() else ""


def _jsonl_rows(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(_BOM) if number == 1 else line
            if text.strip():
                yield _json_row(number, text)


def _json_row(number: int, line: bytes) -> Row:
    try:
        value = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        return Row(number, {}, f"invalid JSON: {error}")
    return Row(number, value) if isinstance(value, dict) else Row(number, {}, "a row must be a JSON object")


def _json_rows(path: Path) -> Iterator[Row]:
    try:
        items = msgspec.json.decode(path.read_bytes().removeprefix(_BOM))
    except msgspec.DecodeError as error:
        yield Row(1, {}, f"invalid JSON: {error}")
        return
    if not isinstance(items, list):
        yield Row(1, {}, "a JSON dataset must be a list of objects")
        return
    for number, item in enumerate(items, 1):
        yield Row(number, item) if isinstance(item, dict) else Row(number, {}, "a row must be a JSON object")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _weight(value: Any) -> float:
    if value is None or value == "":
        return 1.0
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = -1.0
    if not 0 <= weight < float("inf"):
        raise ValueError(f"the weight must be a number >= 0, not {value!r}")
    return weight


def _tags(value: Any) -> tuple[str, ...]:
    if not value:
        return ()
    if isinstance(value, list):
        return tuple(str(tag) for tag in value)
    parts = str(value).replace(";", ",").split(",")
    return tuple(tag.strip() for tag in parts if tag.strip())


def _scorer(value: Any) -> dict[str, Any]:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise ValueError(f"the scorer is not valid JSON: {error}") from None
    return value if isinstance(value, dict) else {"type": str(value)}
