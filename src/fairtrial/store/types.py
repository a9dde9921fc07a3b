"""Column types that behave alike in every database.

What SQLite stores, PostgreSQL stores too and gives back unchanged: 64-bit integers, texts with NUL characters, texts
compared byte by byte. NaN is stored as NULL in both.
"""

from __future__ import annotations

import math
from typing import Any

import sqlalchemy
from sqlalchemy import BigInteger, ColumnElement, Dialect, FunctionElement, TypeDecorator
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

POSTGRESQL = "postgresql"
_ESCAPE = "\uffff"  # a code point that Unicode reserves for internal use
_ESCAPED = {"\0": f"{_ESCAPE}0", _ESCAPE: f"{_ESCAPE}1"}  # PostgreSQL's text cannot contain NUL


class _PostgresText(TypeDecorator[str]):
    """Text with NUL characters escaped, sorted and compared by code points as in SQLite."""

    impl = sqlalchemy.Text
    cache_ok = True

    def __init__(self) -> None:
        super().__init__(collation="C")

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Escape what PostgreSQL cannot store; refuse numbers that SQLite would refuse."""
        if isinstance(value, str):
            if "\0" in value or _ESCAPE in value:
                return value.replace(_ESCAPE, _ESCAPED[_ESCAPE]).replace("\0", _ESCAPED["\0"])
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise OverflowError("the number is too large")
        return value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        if isinstance(value, str) and _ESCAPE in value:
            return value.replace(_ESCAPED["\0"], "\0").replace(_ESCAPED[_ESCAPE], _ESCAPE)
        return value


class _PostgresFloat(TypeDecorator[float]):
    """A 64-bit number; NaN becomes NULL, as in SQLite."""

    impl = sqlalchemy.Double
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> float | None:
        if value is None:
            return None
        number = float(value)
        return None if math.isnan(number) else number


class _PostgresInteger(TypeDecorator[int]):
    """A 64-bit integer; whole numbers of other types become one, as in SQLite."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        if isinstance(value, float):
            return None if math.isnan(value) else int(value) if value.is_integer() else value
        return int(value) if isinstance(value, bool) else value


Text: TypeEngine[str] = sqlalchemy.Text().with_variant(_PostgresText(), POSTGRESQL)
String: TypeEngine[str] = sqlalchemy.String().with_variant(_PostgresText(), POSTGRESQL)
Integer: TypeEngine[int] = sqlalchemy.Integer().with_variant(_PostgresInteger(), POSTGRESQL)
Float: TypeEngine[float] = sqlalchemy.Float().with_variant(_PostgresFloat(), POSTGRESQL)


class json_text(FunctionElement[str]):  # noqa: N801  # it reads like the SQL functions next to it
    """The text of a JSON column, which is stored as bytes."""

    type = sqlalchemy.Text()
    inherit_cache = True


@compiles(json_text)
def _cast(element: json_text, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST({_argument(element, compiler, options)} AS TEXT)"


@compiles(json_text, POSTGRESQL)
def _decode(element: json_text, compiler: SQLCompiler, **options: Any) -> str:
    return f"convert_from({_argument(element, compiler, options)}, 'UTF8')"


def _argument(element: json_text, compiler: SQLCompiler, options: dict[str, Any]) -> str:
    (column,) = element.clauses
    assert isinstance(column, ColumnElement)
    return compiler.process(column, **options)
