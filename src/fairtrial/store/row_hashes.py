"""A hash in each row of cases, answers, scores and opinions, by which `store check` proves it (design note 0043).

Equal in every database: a value counts as what its column makes of it. What follows the last value is left out, so that
a later version can add a column without touching the rows that there are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import msgspec
import sqlalchemy
from sqlalchemy import Column, Connection, Table, select, text, update

from fairtrial.core.place import COLUMNS
from fairtrial.core.types_in_threads import look_into
from fairtrial.store import schema
from fairtrial.store.hash_column import CHANGED, HASH, content

_encode = msgspec.msgpack.Encoder().encode
OF_TRIAL = ("run_id", *COLUMNS)
HASHED = tuple(table for table in schema.metadata.sorted_tables if HASH in table.c)


_SHORT, _NOTHING = 16, b"\xc0"  # MessagePack's arrays have a header of one byte up to 15 values
# Numbers that SQLite stores as others: NaN as nothing, negative zero as zero.
_NEGATIVE_ZERO, *_NAN = b"\xcb\x80\0\0\0\0\0\0\0", b"\xcb\x7f\xf8", b"\xcb\xff\xf8"


class _UnusualError(Exception):
    """A value that its column would change in ways that differ from one database to the next."""


class RowHash:
    """Hashes the rows of a table; `prefix` is what the names of columns begin with, but for those of the trial."""

    def __init__(self, table: Table, prefix: str = "") -> None:
        columns = content(table)
        self._kinds = [_kind(column.type) for column in columns]
        self._values = itemgetter(*(_label(column, prefix) for column in columns))
        self._hash = _label(table.c[HASH], prefix)
        # Nearly all rows have values of the right types: this is the quickest way to see it.
        fields = [(str(column.name), _kind(column.type) | None) for column in columns]
        self._struct = msgspec.defstruct(table.name, fields, array_like=True, gc=False)
        look_into(self._struct)
        self._header = 1 if len(fields) < _SHORT else 3

    def __call__(self, row: Mapping[str, Any]) -> int | None:
        """Return a row's hash; None if it has a value that is not of its column's type, and so cannot be proven."""
        try:
            packed = self._pack(self._values(row))
        except (_UnusualError, KeyError, UnicodeError, OverflowError):
            return None
        content = packed[self._header :].rstrip(_NOTHING)
        return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big", signed=True) or 1

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row is as it was written, as far as its hash tells."""
        stored = row[self._hash]
        return stored is None or self(row) == stored

    def _pack(self, values: tuple[Any, ...]) -> bytes:
        try:
            packed = _encode(msgspec.convert(values, self._struct))
        except msgspec.ValidationError:
            return self._pack_unusual(values)
        if _NEGATIVE_ZERO in packed or _NAN[0] in packed or _NAN[1] in packed:
            return self._pack_unusual(values)
        return packed

    def _pack_unusual(self, values: tuple[Any, ...]) -> bytes:
        return _encode([_stored(value, kind) for value, kind in zip(values, self._kinds, strict=True)])


def _label(column: Column[Any], prefix: str) -> str:
    return str(column.name) if column.name in OF_TRIAL else f"{prefix}{column.name}"


def _kind(column: Any) -> type:
    if isinstance(column, sqlalchemy.Float):
        return float
    if isinstance(column, sqlalchemy.Boolean):
        return bool
    if isinstance(column, sqlalchemy.Integer):
        return int
    return bytes if isinstance(column, sqlalchemy.LargeBinary) else str


def _stored(value: Any, kind: type) -> Any:
    """Return what a column makes of a value."""
    if value is None:
        return None
    if kind is float and isinstance(value, int | float):
        number = float(value)
        return None if math.isnan(number) else number + 0.0  # -0.0 becomes 0.0
    if kind is bool and value in (0, 1):
        return bool(value)
    if kind is int and (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        return int(value)
    if kind is str and isinstance(value, str):
        return str(value)  # of a subclass
    if kind is bytes and isinstance(value, bytes):
        return bytes(value)
    raise _UnusualError


def with_hashes(table: Table, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of a table with their hashes, if it has any."""
    row_hash = _OF.get(table)
    return rows if row_hash is None else [{**row, HASH: row_hash(row)} for row in rows]


def where(row: Mapping[str, Any]) -> str:
    """Return whose row it is, as far as it says so."""
    places = {"run_id": "run", "plan_id": "plan", "case_position": "case", "position": "case", "arm_position": "arm"}
    known = {**places, "repeat": "repeat", "scoring": "scoring"}
    return "".join(f", {word} {row[name]}" for name, word in known.items() if row.get(name) is not None)


def is_whole(table: Table, row: Mapping[str, Any]) -> bool:
    """Return whether a row of a table is as it was written, as far as its hash tells."""
    return _OF[table].is_of(row)


def hash_changed(connection: Connection, table: Table, *which: Any) -> None:
    """Hash the rows that this transaction has changed in place."""
    changed = text(f"{HASH} = {CHANGED}")  # as in the index, not a parameter
    for row in connection.execute(select(table).where(changed, *which)).mappings().all():
        same = [column == row[column.name] for column in table.primary_key]
        connection.execute(update(table).where(*same).values({HASH: _OF[table](dict(row))}))


_OF = {table: RowHash(table) for table in HASHED}
