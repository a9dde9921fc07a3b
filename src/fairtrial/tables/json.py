"""`.json`: a list of objects, at the top or below a key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.tables.jsonl import json_problem, object_row
from fairtrial.tables.row import Row, TableError, TableOptions
from fairtrial.tables.text import encoding_of, open_bytes, open_text

MAX_BYTES = 2**30  # JSON has no lines to stop at: the text is held in memory, though never as values
_BOM = b"\xef\xbb\xbf"


def rows(path: Path, options: TableOptions) -> Iterator[Row]:
    """Yield the objects of the list; numbers count its items."""
    text = _read(path, encoding_of(path, options.encoding))
    keys = options.records.split(".") if options.records else []
    items = _items(_below(text, keys), options.records)
    for number, item in enumerate(items, 1):
        yield object_row(number, item)


def _read(path: Path, encoding: str) -> bytes:
    with open_bytes(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise TableError(f"the JSON file is larger than {MAX_BYTES // 2**30} GB: save it as .jsonl, a row per line")
    if encoding.startswith("utf-8"):
        return data.removeprefix(_BOM)
    del data
    with open_text(path, encoding) as texts:
        return texts.read().encode()


def _below(text: bytes | msgspec.Raw, keys: list[str]) -> bytes | msgspec.Raw:
    """Return the part of a JSON text below a path of keys."""
    for number, key in enumerate(keys):
        mapping = _decoded(text, dict[str, msgspec.Raw])
        if mapping is None or key not in mapping:
            place = f"`{'.'.join(keys[:number])}`" if number else "the file"
            known = f" (keys: {', '.join(list(mapping)[:20])})" if mapping else ""
            raise TableError(f"`records`: {place} has no key `{key}`{known}", 1)
        text = mapping[key]
    return text


def _items(text: bytes | msgspec.Raw, records: str | None) -> list[msgspec.Raw]:
    items: list[msgspec.Raw] | None = _decoded(text, list[msgspec.Raw])
    if items is not None:
        return items
    if records:
        raise TableError(f"`records`: `{records}` is not a list of objects", 1)
    path = _find_list(text)
    hint = f": set `records: {path}`, where there is one" if path else ""
    raise TableError(f"a JSON dataset must be a list of objects{hint}", 1)


def _find_list(text: bytes | msgspec.Raw, depth: int = 3) -> str:
    """Return the path of the first list below a mapping, or an empty one."""
    mapping = _decoded(text, dict[str, msgspec.Raw]) or {}
    for key, value in mapping.items():
        if _decoded(value, list[msgspec.Raw]):
            return str(key)
    for key, value in mapping.items() if depth else ():
        if path := _find_list(value, depth - 1):
            return f"{key}.{path}"
    return ""


def _decoded(text: bytes | msgspec.Raw, type: Any) -> Any:
    """Return the value of a JSON text without its inner parts; None if it is of another type."""
    try:
        return msgspec.json.decode(text, type=type)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TableError(json_problem(error, text, 1), 1) from None
