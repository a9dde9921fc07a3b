"""Cases from datasets. They are streamed: the rows are read again each time and never held in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairtrial.config.attach import read_attached
from fairtrial.config.defaults import row_with_defaults
from fairtrial.config.document import DatasetEntry
from fairtrial.config.selection import Numbered, RowSelection, as_number, where_problems
from fairtrial.core.expected import read_expected
from fairtrial.core.experiment import Case
from fairtrial.core.file import Attachment
from fairtrial.core.ids import canonical_json
from fairtrial.tables import FORMATS, TableOptions, format_of, misplaced_options, missing_extra, rows_of
from fairtrial.tables.files import find_files, is_pattern, sha256_of_all
from fairtrial.tables.hub import HubSource, fetch, is_hub

_COLUMNS = (
    "input", "expected", "id", "weight", "scorer", "tags", "category", "difficulty", "cluster", "attach", "turns"
)  # fmt: skip
_HUB_KEYS = ("split", "config", "revision")
_FILE_KEYS = ("delimiter", "quote", "encoding", "sheet", "records")


class Located(NamedTuple):
    """A case or the problem of its row, with the file and line of the row."""

    file: str
    line: int
    case: Case | None
    problem: str = ""


def dataset_problems(entry: DatasetEntry, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (key, problem) for everything that is wrong with a dataset before its rows are read."""
    yield from ((f"where.{column}", problem) for column, problem in where_problems(entry.where))
    yield from _mark_problems(entry)
    if entry.sample is None and entry.seed != 0:
        yield "seed", "`seed` is the seed of a `sample`: set both, or neither"
    if is_hub(entry.path):
        for key in _FILE_KEYS:
            if getattr(entry, key) is not None:
                yield key, f"`{key}` is for files; a dataset of the Hub has none"
        return
    for key in _HUB_KEYS:
        if getattr(entry, key) is not None:
            yield key, f"`{key}` is for datasets of the Hub (hf://owner/name), not for files"
    yield from _file_problems(entry, folder)


def _mark_problems(entry: DatasetEntry) -> Iterator[tuple[str, str]]:
    """Yield the problems of the characters between and around cells."""
    for key in ("delimiter", "quote"):
        mark = getattr(_table_options(entry), key)
        if mark is not None and (len(mark) > 1 or mark in ("\r", "\n") or (key, mark) == ("delimiter", "")):
            yield key, f"`{key}` must be one character, not {mark!r}"
    if entry.delimiter and entry.delimiter == (entry.quote or '"'):
        yield "delimiter", "`delimiter` and `quote` must differ"


def _file_problems(entry: DatasetEntry, folder: Path) -> Iterator[tuple[str, str]]:
    files = find_files(entry.path, folder)
    if not files:
        what = "no file matches" if is_pattern(entry.path) else "there is no file"
        yield "path", f"{what} {folder / entry.path}"
    for file in files:
        if format_of(file) is None:
            yield "path", f"a dataset must be one of {', '.join(FORMATS)}, not `{file.name}`"
        elif missing := missing_extra(file):
            yield "path", missing
        else:
            yield from misplaced_options(file, _table_options(entry))
            continue
        return


def _table_options(entry: DatasetEntry) -> TableOptions:
    asked = entry.input if entry.turns is None else None  # which a table of conversations need not have
    columns = {asked, *(getattr(entry, name) for name in _COLUMNS[1:])} - {None}
    options = {key: getattr(entry, key) for key in _FILE_KEYS}
    if entry.delimiter == r"\t":  # as people write it without double quotes
        options["delimiter"] = "\t"
    return TableOptions(**options, columns=tuple(sorted(columns)))


class Dataset:
    """Data files, the meaning of their columns, and which rows are selected."""

    def __init__(
        self,
        entry: DatasetEntry,
        folder: Path,
        wanted: Collection[str] = (),
        defaults: Case | None = None,
        *,
        fetch: bool = True,
    ) -> None:
        """`wanted` are the names that the suite's templates use; other columns with a meaning are not kept twice.

        `defaults` is what every row says unless it says otherwise; `fetch`: also attachments at web addresses.
        """
        self._defaults, self._fetches = defaults, fetch
        self.entry, self._folder, self._wanted = entry, folder, wanted
        self._selection = RowSelection(entry)
        self._origin: dict[str, Any] = {}
        self.files = self._fetch() if is_hub(entry.path) else find_files(entry.path, folder)
        self._options = _table_options(entry)
        unnamed = (name for name in ("id", "expected") if getattr(entry, name) is None)
        self._given = [(name, column) for name in _COLUMNS[1:] if (column := getattr(entry, name)) is not None]
        self._used = {*unnamed, *(getattr(entry, name) for name in _COLUMNS)}

    def _fetch(self) -> list[Path]:
        """Return the local copy of a dataset of the Hub; if only its first rows are needed, a copy of those."""
        entry = self.entry
        first_rows = entry.limit is not None and not entry.where
        source = HubSource(
            name=entry.path,
            config=entry.config,
            split=entry.split,
            revision=entry.revision,
            head=entry.offset + (entry.limit or 0) if first_rows else None,
        )
        copy = fetch(source, self._folder)
        self._origin = copy.origin
        return [copy.file]

    def sha256(self) -> str:
        """Return the SHA-256 of what the rows come from: the file's bytes, or a hash of all files and the selection."""
        content = sha256_of_all(self.files, self._folder)
        chosen = {**self._selection.identity(), "sheet": self.entry.sheet, "records": self.entry.records}
        chosen = {name: value for name, value in chosen.items() if value}
        if self.entry.attach is not None:
            chosen["attached"] = self._sha256_of_attached()
        return hashlib.sha256(canonical_json([content, chosen])).hexdigest() if chosen else content

    def _sha256_of_attached(self) -> str:
        """Return a hash of the contents of all files that rows name; what cannot be read is reported with its row."""
        digest = hashlib.sha256()
        for name in self.attached_names():
            with suppress(ValueError):
                attached = read_attached([name], self._folder, fetch=self._fetches)
                digest.update("".join((*attached.texts, *(file.sha256 for file in attached.files))).encode())
        return digest.hexdigest()

    def attached_names(self) -> Iterator[str]:
        """Yield the names of the files that rows name, each once."""
        seen: set[int] = set()  # of hashes, as there may be many
        for _, _, row in self._selection.rows(self._rows) if self.entry.attach is not None else ():
            with suppress(ValueError):
                for name in [] if row.problem else _names(self._cell(row.fields, str(self.entry.attach))):
                    if hash(name) not in seen:
                        seen.add(hash(name))
                        yield name

    def origin(self) -> dict[str, Any]:
        """Return where the rows come from and which are selected, for the record of a run."""
        if not self._origin:
            files = [
                file.relative_to(self._folder) if file.is_relative_to(self._folder) else file for file in self.files
            ]
            self._origin = {"files": [str(file) for file in files]}
        return {**self._origin, **self._selection.identity()}

    def cases(self, first: int) -> Iterator[Located]:
        """Yield the case of every selected row, or its problem; positions start at `first`."""
        one_file = len(self.files) == 1
        for position, (number, file, row) in enumerate(self._selection.rows(self._rows), first):
            if row.problem:
                yield Located(file, row.line, None, row.problem)
                continue
            try:
                name = f"row-{first + number + 1}" if one_file else f"{file}:{row.line}"
                yield Located(file, row.line, self._case(row.fields, name, position))
            except ValueError as error:
                yield Located(file, row.line, None, str(error))

    def _rows(self) -> Iterator[Numbered]:
        """Yield all rows of all files, in the order of the files' names."""
        names = [self._name(file) for file in self.files]
        rows = (
            (name, row) for name, file in zip(names, self.files, strict=True) for row in rows_of(file, self._options)
        )
        return (Numbered(number, name, row) for number, (name, row) in enumerate(rows))

    def _name(self, file: Path) -> str:
        if is_hub(self.entry.path) or not is_pattern(self.entry.path):
            return self.entry.path
        return file.relative_to(self._folder).as_posix() if file.is_relative_to(self._folder) else file.as_posix()

    def _case(self, fields: dict[str, Any], name: str, position: int) -> Case:
        cells = {key: self._cell(fields, column) for key, column in self._given}
        turns = _turns(cells["turns"]) if "turns" in cells else ()
        question = turns[0] if turns else self._input(fields)
        files: tuple[Attachment, ...] = ()
        if "attach" in cells:
            attached = read_attached(_names(cells["attach"]), self._folder, fetch=self._fetches)
            question, files = attached.question(question), attached.files
        case = Case(
            id=_text(cells["id"] if "id" in cells else fields.get("id")) or name,
            input=question,
            turns=turns[1:],
            attach=files,
            expected=read_expected(cells["expected"] if "expected" in cells else fields.get("expected")),
            weight=_weight(cells.get("weight"), self._defaults.weight if self._defaults else 1.0),
            metadata=self._metadata(fields),
            position=position,
            vars={column: fields[column] for column in self._wanted if column in self._used and column in fields},
            **{key: _READ[key](cell) for key, cell in cells.items() if key in _READ},
        )
        return row_with_defaults(case, self._defaults, fields) if self._defaults else case

    def _input(self, fields: dict[str, Any]) -> str:
        column = self.entry.input
        text = _text(self._cell(fields, column))
        if text is None:
            raise ValueError(f"the column `{column}` is empty")
        if "\0" in text:
            raise ValueError(f"the column `{column}` has a NUL character, which cannot be sent: remove it")
        return text

    def _metadata(self, fields: dict[str, Any]) -> dict[str, Any] | None:
        """Return the columns without a meaning here; they stay with the case and are exported."""
        unused = {name: value for name, value in fields.items() if name not in self._used}
        return {"columns": unused} if unused else None

    def _cell(self, fields: dict[str, Any], column: str) -> Any:
        """Return the value in a column that the suite names: every row must have it."""
        if column not in fields:
            raise ValueError(f"no column `{column}` (columns: {', '.join(map(str, fields))})")
        return fields[column]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _weight(value: Any, default: float) -> float:
    if value is None or value == "":
        return default
    weight = as_number(value)
    if weight is None or weight < 0:
        raise ValueError(f"the weight must be a number >= 0, not {value!r}")
    return weight


def _tags(value: Any) -> tuple[str, ...]:
    if not value:
        return ()
    if isinstance(value, list):
        return tuple(str(tag) for tag in value)
    parts = str(value).replace(";", ",").split(",")
    return tuple(tag.strip() for tag in parts if tag.strip())


def _names(value: Any) -> list[str]:
    """Return the names of files in a cell."""
    listed = _listed(value)
    if listed is None:
        listed = [part.strip() for part in str(value or "").split(";")]
    if not all(isinstance(name, str) for name in listed):
        raise ValueError("the attachments must be paths or addresses: a text, or a list of texts")
    return [name for name in listed if name]


def _turns(value: Any) -> tuple[str, ...]:
    """Return what the user says, from a cell; a text that is not a list is one turn."""
    listed = _listed(value)
    if listed is None:
        listed = [value] if value not in (None, "") else []
    if not all(isinstance(turn, str) and turn.strip() for turn in listed):
        raise ValueError("the turns must be a list of texts: what the user says, without the answers")
    if any("\0" in turn for turn in listed):
        raise ValueError("a turn has a NUL character, which cannot be sent: remove it")
    return tuple(listed)


def _listed(value: Any) -> list[Any] | None:
    """Return the list in a cell, which a table has as JSON; None if there is none."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise ValueError(f"the list is not valid JSON: {error}") from None
    return list(value) if isinstance(value, list | tuple) else None


def _scorer(value: Any) -> dict[str, Any] | None:
    if not value:
        return None
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise ValueError(f"the scorer is not valid JSON: {error}") from None
    return value if isinstance(value, dict) else {"type": str(value)}


# What other cells say about a case.
_READ: dict[str, Callable[[Any], Any]] = {
    "tags": _tags,
    "category": _text,
    "difficulty": _text,
    "cluster": _text,
    "scorer": _scorer,
}
