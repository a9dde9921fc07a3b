"""Changes to a suite's text that leave everything else as it was written: comments, order, quotes, variables."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import yaml

from fairtrial.core.errors import FairtrialError, NotInstalledError

Path = tuple[str | int, ...]
_PLAIN = re.compile(r"[^\W_]((?:[\w .()'/+;!-]|(?<=\w):(?=\w))*[\w.()'!-])?")  # needs no quotes, wherever it stands
_FLUSH = re.compile(r"^\w+:[ \t]*(?:#.*)?\n- ", re.MULTILINE)
_LINE = re.compile(r"\S.*\S|\S|")  # of a block: nothing at its ends that cannot be seen
_WIDTH = 10**6  # no line is broken that was not broken before


class Editor:
    """A suite's text, opened for changes."""

    def __init__(self, text: str) -> None:
        self._yaml = _round_trip(text)
        try:
            self.value: Any = self._yaml.load(text) if text.strip() else self._yaml.map()
        except Exception as error:  # its parser has errors of many kinds, all of them about the text
            raise FairtrialError(f"this is not YAML: {getattr(error, 'problem', None) or error}") from None
        if not isinstance(self.value, dict):
            raise FairtrialError("a suite is a mapping with `name`, `targets` and `cases` or `dataset`")

    @property
    def text(self) -> str:
        """The text as it is now."""
        out = StringIO()
        self._yaml.dump(self.value, out)
        return out.getvalue()

    def get(self, path: Path, otherwise: Any = None) -> Any:
        """What stands at a path."""
        found = self.value
        for part in path:
            if not _has(found, part):
                return otherwise
            found = found[part]
        return found

    def set(self, path: Path, value: Any) -> None:
        """Write a value; what is around it is made where it is missing. None takes it away."""
        if value is None:
            self.remove(path)
            return
        holder = self._holder(path)
        old = self.get(path)
        if isinstance(old, dict) and isinstance(value, dict) and old.anchor.value is None:  # type: ignore[attr-defined]
            for name in [name for name in old if name not in value]:
                del old[name]
            for name, item in value.items():
                old[name] = self._written(item)
            return
        holder[path[-1]] = self._written(value)

    def remove(self, path: Path) -> None:
        """Take a value away; parameters of which nothing is left go with it, nothing else does."""
        holder = self.get(path[:-1])
        if not _has(holder, path[-1]):
            return
        del holder[path[-1]]
        if not holder and len(path) > 1 and path[-2] == "params":
            self.remove(path[:-1])

    def insert(self, path: Path, index: int | None, values: list[Any]) -> None:
        """Put items into a list, at a place or at its end; the list is made where it is missing."""
        holder = self.get(path)
        if holder is None:
            self.set(path, [])
            holder = self.get(path)
        place = len(holder) if index is None else index
        for offset, value in enumerate(values):
            holder.insert(place + offset, self._written(value))

    def move(self, path: Path, index: int, to: int) -> None:
        """Another place in the same list."""
        holder = self.get(path)
        item = holder.pop(index)
        holder.insert(max(0, min(to, len(holder))), item)

    def duplicate(self, path: Path, index: int, change: Callable[[Any], None] = lambda _: None) -> None:
        """The same once more, right behind it."""
        from copy import deepcopy

        holder = self.get(path)
        copy = deepcopy(holder[index])
        change(copy)
        holder.insert(index + 1, copy)

    def rename(self, path: Path, name: str) -> None:
        """Another key for the same value, at the same place."""
        holder, old, name = self.get(path[:-1]), path[-1], name.strip()
        if not name:
            raise FairtrialError(f"`{old}` needs a name")
        if name == old:
            return
        if name in holder:
            raise FairtrialError(f"`{name}` is there already")
        place = list(holder).index(old)
        holder.insert(place, name, holder.pop(old))

    def _holder(self, path: Path) -> Any:
        found = self.value
        for part, following in itertools.pairwise(path):
            if not _has(found, part) or found[part] is None:
                made = self._yaml.seq() if isinstance(following, int) else self._yaml.map()
                if isinstance(found, dict):
                    found[part] = made
                else:
                    found.append(made)
            found = found[part]
            if isinstance(found, str):
                raise FairtrialError(f"`{'.'.join(map(str, path))}`: `{part}` is a text, and has no parts")
        return found

    def _written(self, value: Any) -> Any:
        """A value as people write it: long or broken texts as blocks, the rest as it is."""
        if isinstance(value, str):
            return _as_text(value)
        if isinstance(value, dict):
            mapping = self._yaml.map()
            for name, item in value.items():
                mapping[name] = self._written(item)
            return mapping
        if isinstance(value, list):
            sequence = self._yaml.seq(self._written(item) for item in value)
            if value and all(isinstance(item, str | int | float | bool) for item in value):
                sequence.fa.set_flow_style()
            return sequence
        return value


def _has(holder: Any, part: str | int) -> bool:
    if isinstance(holder, list):
        return isinstance(part, int) and 0 <= part < len(holder)
    return isinstance(holder, dict) and part in holder


def _as_text(value: str) -> Any:
    """A text that every reader of YAML takes for the text that it is, also one to whom `yes` is none."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if "\n" in value and all(_LINE.fullmatch(line) for line in value.rstrip("\n").split("\n")):
        return LiteralScalarString(value)
    tag = yaml.SafeLoader("").resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]
    plain = _PLAIN.fullmatch(value) and tag == "tag:yaml.org,2002:str"
    return value if plain else DoubleQuotedScalarString(value)


def _round_trip(text: str) -> Any:
    try:
        from ruamel.yaml import YAML
    except ImportError:
        raise NotInstalledError("editing a suite", "web") from None
    made = YAML(typ="rt")
    made.preserve_quotes = True
    made.width = _WIDTH
    if _FLUSH.search(text):  # lists that stand as far left as their key
        made.indent(mapping=2, sequence=2, offset=0)
    else:
        made.indent(mapping=2, sequence=4, offset=2)
    made.allow_duplicate_keys = True
    return made
