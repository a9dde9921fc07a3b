"""What is wrong with a stored row: its hash is of another or, without one, nothing would have written such a row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import sqlalchemy

from fairtrial.store import rows, schema
from fairtrial.store.hash_column import HASH
from fairtrial.store.row_hashes import HASHED, is_whole
from fairtrial.text.printable import paired

_STATUSES = ("running", "completed", "incomplete", "interrupted", "stopped")
_PACKED = ("files", "late", "digests")  # whose bytes are no JSON
_TABLES = schema.metadata.tables


class RowCheck:
    """Says what is wrong with the rows of a table, which may be of an earlier version."""

    def __init__(self, table: str) -> None:
        known = _TABLES.get(table)
        self._table = known
        # What was computed from runs is computed again if it cannot be read.
        columns = [] if known is None or known is schema.digests else list(known.c)
        self._flags = [str(column.name) for column in columns if isinstance(column.type, sqlalchemy.Boolean)]
        self._columns = [(str(c.name), bool(c.nullable), _check_of(table, c.type)) for c in columns]
        self._also: Callable[[Mapping[str, Any]], str | None] = _ALSO.get(table, _nothing)
        self.hashed = known in HASHED

    def problem(self, row: dict[str, Any]) -> str | None:
        """Return what is wrong with a row; None if nothing is, as far as the row tells."""
        for name in self._flags:
            if row.get(name) in (0, 1):
                row[name] = bool(row[name])
        if self.hashed and row.get(HASH) is not None:
            assert self._table is not None
            complete = all(name in row for name, _, _ in self._columns)
            return None if complete and is_whole(self._table, row) else "is not as it was written"
        for name, nullable, fits in self._columns:
            value = row.get(name)
            if value is None:
                if name in row and not nullable:
                    return f"has no {name}"
            elif not fits(value):
                return f"has a {name} that cannot be right"
        return self._also(row)


def mended(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with texts that can be stored: damaged letters are marked in them."""
    return {name: _legible(value) if isinstance(value, str) else value for name, value in row.items()}


def _legible(value: str) -> str:
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _nothing(_: Mapping[str, Any]) -> str | None:
    return None


def _check_of(table: str, kind: Any) -> Callable[[Any], bool]:
    if isinstance(kind, sqlalchemy.Float):
        return lambda value: isinstance(value, int | float)
    if isinstance(kind, sqlalchemy.Boolean):
        return lambda value: isinstance(value, bool)
    if isinstance(kind, sqlalchemy.Integer):
        return lambda value: isinstance(value, int)
    if isinstance(kind, sqlalchemy.LargeBinary):
        return _is_bytes if table in _PACKED else _is_json
    return _is_text


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and paired(value) is value


def _is_json(value: Any) -> bool:
    try:
        msgspec.json.decode(value)
    except (msgspec.DecodeError, TypeError, UnicodeError):
        return False
    return True


def _of_file(row: Mapping[str, Any]) -> str | None:
    return None if hashlib.sha256(row["body"]).hexdigest() == row["sha256"] else "is not the file that was stored"


def _of_run(row: Mapping[str, Any]) -> str | None:
    if row["status"] not in _STATUSES:
        return "has a status that no run has"
    documents = [msgspec.json.decode(row[name]) for name in ("settings", "context")]
    return None if all(isinstance(one, dict) for one in documents) else "has settings that cannot be read"


def _of_plan(row: Mapping[str, Any]) -> str | None:
    try:
        rows.read_arms(row["arms"], None)
    except (msgspec.MsgspecError, TypeError, KeyError, AttributeError):
        return "has arms that cannot be read"
    return None


_ALSO: dict[str, Callable[[Mapping[str, Any]], str | None]] = {"files": _of_file, "runs": _of_run, "plans": _of_plan}
