"""Edits of a suite's text that preserve everything else: comments, order, quotes, variables."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import yaml

from fairtrial.core.errors import FairtrialError
from fairtrial.text.yaml_text import check_yaml

Path = tuple[str | int, ...]
_PLAIN = re.compile(r"[^\W_]((?:[\w .()'/+;!-]|(?<=\w):(?=\w))*[\w.()'!-])?")  # needs no quotes in any position
_FLUSH = re.compile(r"^\w+:[ \t]*(?:#.*)?\n- ", re.MULTILINE)
_LINE = re.compile(r"\S.*\S|\S|")  # a line of a block: no invisible characters at its ends
_WIDTH = 10**6  # never wrap long lines


class Editor:
    """A suite's text, open for editing."""

    def __init__(self, text: str) -> None:
        self._yaml = _round_trip(text)
        try:
            check_yaml(text)
            self.value: Any = self._yaml.load(text) if text.strip() else self._yaml.map()
        except Exception as error:  # its parser raises many kinds of errors, all about the text
            raise FairtrialError(f"invalid YAML: {getattr(error, 'problem', None) or error}") from None
        if not isinstance(self.value, dict):
            raise FairtrialError("a suite must be a mapping with `name`, `targets` and `cases` or `dataset`")

    @property
    def text(self) -> str:
        """The current text."""
        out = StringIO()
        self._yaml.dump(self.value, out)
        return out.getvalue()

    def get(self, path: Path, otherwise: Any = None) -> Any:
        """Return the value at a path."""
        value = self.value
        for part in path:
            if not _has(value, part):
                return otherwise
            value = value[part]
        return value

    def set(self, path: Path, value: Any) -> None:
        """Write a value and create missing parents. None removes the value."""
        if value is None:
            self.remove(path)
            return
        holder = self._holder(path)
        old = self.get(path)
        if isinstance(old, dict) and isinstance(value, dict) and old.anchor.value is None:  # type: ignore[attr-defined]
            for name in [name for name in old if name not in value]:
                del old[name]
            for name, item in value.items():
                old[name] = self._to_yaml(item)
            return
        holder[path[-1]] = self._to_yaml(value)

    def remove(self, path: Path) -> None:
        """Remove a value; a `params` mapping that becomes empty is removed too, nothing else is."""
        holder = self.get(path[:-1])
        if not _has(holder, path[-1]):
            return
        del holder[path[-1]]
        if not holder and len(path) > 1 and path[-2] == "params":
            self.remove(path[:-1])

    def insert(self, path: Path, index: int | None, values: list[Any]) -> None:
        """Insert items into a list at an index or at its end; create the list if it is missing."""
        holder = self.get(path)
        if holder is None:
            self.set(path, [])
            holder = self.get(path)
        start = len(holder) if index is None else index
        for offset, value in enumerate(values):
            holder.insert(start + offset, self._to_yaml(value))

    def move(self, path: Path, index: int, to: int) -> None:
        """Move an item to another position in the same list."""
        holder = self.get(path)
        item = holder.pop(index)
        holder.insert(max(0, min(to, len(holder))), item)

    def duplicate(self, path: Path, index: int, change: Callable[[Any], None] = lambda _: None) -> None:
        """Insert a copy of an item right after it."""
        from copy import deepcopy

        holder = self.get(path)
        copy = deepcopy(holder[index])
        change(copy)
        holder.insert(index + 1, copy)

    def rename(self, path: Path, name: str) -> None:
        """Rename a key and keep its value and position."""
        holder, old, name = self.get(path[:-1]), path[-1], name.strip()
        if not name:
            raise FairtrialError(f"`{old}` needs a name")
        if name == old:
            return
        if name in holder:
            raise FairtrialError(f"`{name}` already exists")
        position = list(holder).index(old)
        holder.insert(position, name, holder.pop(old))

    def _holder(self, path: Path) -> Any:
        """Return the mapping or list that contains a path; create it if it is missing."""
        holder = self.value
        for part, following in itertools.pairwise(path):
            if not _has(holder, part) or holder[part] is None:
                created = self._yaml.seq() if isinstance(following, int) else self._yaml.map()
                if isinstance(holder, dict):
                    holder[part] = created
                else:
                    holder.append(created)
            holder = holder[part]
            if isinstance(holder, str):
                raise FairtrialError(f"`{'.'.join(map(str, path))}`: `{part}` is text and has no keys")
        return holder

    def _to_yaml(self, value: Any) -> Any:
        """Convert a value to YAML as one would write it by hand: texts of several lines become blocks."""
        if isinstance(value, str):
            return _as_text(value)
        if isinstance(value, dict):
            mapping = self._yaml.map()
            for name, item in value.items():
                mapping[name] = self._to_yaml(item)
            return mapping
        if isinstance(value, list):
            sequence = self._yaml.seq(self._to_yaml(item) for item in value)
            if value and all(isinstance(item, str | int | float | bool) for item in value):
                sequence.fa.set_flow_style()
            return sequence
        return value


def _has(holder: Any, part: str | int) -> bool:
    if isinstance(holder, list):
        return isinstance(part, int) and 0 <= part < len(holder)
    return isinstance(holder, dict) and part in holder


def _as_text(value: str) -> Any:
    """Quote a text if needed, so that every YAML parser reads it as text, even those that take `yes` for a boolean."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if "\n" in value and all(_LINE.fullmatch(line) for line in value.rstrip("\n").split("\n")):
        return LiteralScalarString(value)
    tag = yaml.SafeLoader("").resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]
    plain = _PLAIN.fullmatch(value) and tag == "tag:yaml.org,2002:str"
    return value if plain else DoubleQuotedScalarString(value)


def _round_trip(text: str) -> Any:
    from ruamel.yaml import YAML

    parser = YAML(typ="rt")
    parser.preserve_quotes = True
    parser.width = _WIDTH
    if _FLUSH.search(text):  # lists are not indented under their key
        parser.indent(mapping=2, sequence=2, offset=0)
    else:
        parser.indent(mapping=2, sequence=4, offset=2)
    parser.allow_duplicate_keys = True
    return parser
