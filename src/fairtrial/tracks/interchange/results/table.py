"""Any table with a row per answer: CSV, TSV, Parquet, Excel, JSON, JSONL, or a data frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.registry import nearest
from fairtrial.foreign.results import SCORE, Columns, Log, Question, Sample
from fairtrial.foreign.source import Source
from fairtrial.tables import TableOptions, format_of, missing_extra, rows_of
from fairtrial.tracks.interchange.values import (
    clean_text,
    expected_of,
    failure_of,
    mark_of,
    name_of,
    number_of,
    tidy,
    usage_of,
)

_MOST_REPEATS = 1000
# The usual names of columns, most specific first; compared without case, blanks and underscores.
_USUAL = {
    "case": ("case", "case_id", "sample_id", "question_id", "item_id", "doc_id", "test_id", "task_id", "id", "sample"),
    "arm": ("arm", "model", "system", "variant", "target", "model_name", "model_id", "method", "provider", "agent"),
    "score": ("score", "correct", "is_correct", "accuracy", "value", "pass", "passed", "success", "mark", "rating"),
    "repeat": ("repeat", "epoch", "trial", "repetition", "seed", "attempt", "run", "iteration"),
    "category": ("category", "subject", "topic", "group", "subset"),
    "difficulty": ("difficulty", "level"),
    "cluster": ("cluster", "cluster_id", "document", "passage", "doc"),
    "cost": ("cost", "cost_usd", "price", "usd"),
    "latency": ("latency", "latency_ms", "duration_ms", "duration", "time_ms", "seconds"),
    "input": ("input", "question", "prompt", "problem", "query"),
    "expected": ("expected", "target", "reference", "ideal", "gold", "label", "expected_output"),
    "answer": ("answer", "response", "output", "completion", "prediction", "actual_output", "generated"),
}  # fmt: skip
_MORE = {
    "weight": ("weight",),
    "tags": ("tags",),
    "error": ("error", "failure", "exception"),
    "prompt_tokens": ("prompt_tokens", "input_tokens"),
    "completion_tokens": ("completion_tokens", "output_tokens"),
    "condition": ("condition",),
}
_MISSING = {"input": "what was asked", "answer": "the answers", "repeat": "repeats", "cluster": "clusters of cases"}
_SECONDS = ("duration", "seconds", "latencys", "latencyseconds")


class Table:
    """Reads tables."""

    def recognises(self, source: Source) -> bool:
        """A table has columns for the case and the score."""
        if format_of(source.path) is None:
            return False
        try:
            row = next(iter(_rows(source)), None)
        except FairtrialError:
            return False
        if row is None:
            return False
        found = _find(list(row), Columns())
        return "case" in found and "score" in found

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per file."""
        for source in sources:
            if format_of(source.path) is None:
                raise FairtrialError(
                    f"{source.path.name} is not a table: give a .csv, .tsv, .json, .jsonl, .parquet or .xlsx file"
                )
            if missing := missing_extra(source.path):
                raise FairtrialError(missing)
            yield Rows(source.name, lambda source=source: _rows(source), columns, (source,)).log()


def _rows(source: Source) -> Iterator[dict[str, Any]]:
    for row in rows_of(source.path, TableOptions()):
        if row.problem:
            raise FairtrialError(f"{source.name}, line {row.line}: {row.problem}")
        yield row.fields


class Rows:
    """Rows of a table as samples."""

    def __init__(self, name: str, rows: Any, columns: Columns, sources: tuple[Source, ...] = ()) -> None:
        self._name, self._rows, self._sources = name, rows, sources
        first = next(iter(rows()), None)
        if first is None:
            raise FairtrialError(f"{name} has no rows")
        self._found = _find(list(first), columns)
        self._check(list(first), columns)
        self._default_arm = name_of(name.rsplit(".", 1)[0]) or "model"
        self._seconds = _folded(self._found.get("latency", "")) in _SECONDS
        self._metric = name_of(self._found["score"]) or SCORE
        others = (name for name in first if name not in self._found.values())
        self._extra = [name for name in others if isinstance(first[name], str | int | float | bool | None)]

    def log(self) -> Log:
        """Return the log."""
        found = self._found
        log = Log(
            tool="table",
            name=self._default_arm,
            samples=self._samples,
            sources=self._sources,
            metrics=(self._metric,),
            primary=self._metric,
        )
        if "arm" not in found:
            log.notes.append(
                f"no column names the arm: all rows are of `{self._default_arm}`; --arm COLUMN chooses one"
            )
        used = ", ".join(f"{ours} from `{name_of(theirs)}`" for ours, theirs in found.items())
        log.notes.append(f"columns: {used}")
        log.missing = [words for name, words in _MISSING.items() if name not in found]
        if self._repeats is None and "repeat" in found:
            log.notes.append(
                f"`{name_of(found['repeat'])}` has other values from case to case: "
                "repeats are counted in the order of rows"
            )
        return log

    @cached_property
    def _repeats(self) -> dict[str, int] | None:
        """The number of every value that tells repeats apart, from 0; None if the values are not those of repeats.

        A column such as `seed` may have a value of its own in every row: then no two cases share a repeat.
        """
        if "repeat" not in self._found:
            return None
        values: dict[str, Any] = {}
        rows: Counter[int] = Counter()
        for row in self._rows():
            value = self._cell(row, "repeat")
            values.setdefault(str(value), value)
            rows[hash((self._arm(row), str(row.get(self._found["case"]))))] += 1
            if len(values) > _MOST_REPEATS:
                return None
        if len(values) > max(rows.values()):
            return None
        numbers = {text: number_of(value) for text, value in values.items()}
        known = None not in numbers.values()
        ordered = sorted(values, key=lambda text: (numbers[text] or 0.0) if known else text)
        return {text: number for number, text in enumerate(ordered)}

    def _check(self, names: list[str], columns: Columns) -> None:
        for name in columns.__struct_fields__:
            wanted = getattr(columns, name)
            if wanted is not None and wanted not in names:
                raise FairtrialError(f"{self._name} has no column `{wanted}` (--{name}){nearest(wanted, names)}")
        for name in ("case", "score"):
            if name not in self._found:
                raise FairtrialError(
                    f"{self._name} has no column for the {name}: say which one it is with --{name} COLUMN "
                    f"(its columns: {', '.join(map(str, names[:20]))})"
                )

    def _samples(self) -> Iterator[Sample]:
        for number, row in enumerate(self._rows(), 1):
            if (case := row.get(self._found["case"])) is None or case == "":
                raise FairtrialError(f"{self._name}, row {number} names no case: fill in `{self._found['case']}`")
            yield self._sample(row, case)

    def _sample(self, row: dict[str, Any], case: Any) -> Sample:
        value = self._cell(row, "score")
        mark = mark_of(value)
        error = self._cell(row, "error")
        failed = error not in (None, "", False, 0) and mark is None
        answer = self._cell(row, "answer")
        reason = "the cell is empty" if value in (None, "") else f"`{str(value)[:50]}` is not a number"
        return Sample(
            question=self._question(row, case),
            arm=self._arm(row),
            repeat=None if self._repeats is None else self._repeats.get(str(self._cell(row, "repeat"))),
            answer=None if failed or answer is None else clean_text(answer),
            failure=failure_of(error) if failed else None,
            scores={} if mark is None else {self._metric: mark},
            unscored={} if mark is not None or failed else {self._metric: reason},
            cost_usd=number_of(self._cell(row, "cost")),
            latency_ms=self._latency(row),
            usage=usage_of(self._cell(row, "prompt_tokens"), self._cell(row, "completion_tokens")),
        )

    def _question(self, row: dict[str, Any], case: Any) -> Question:
        texts: dict[str, Any] = {name: self._text(row, name) for name in ("category", "difficulty", "cluster")}
        tags = self._cell(row, "tags")
        weight = number_of(self._cell(row, "weight"))
        asked = self._cell(row, "input")
        expected = self._cell(row, "expected")
        return Question(
            id=name_of(case),
            input="" if asked is None else clean_text(asked),
            expected=expected_of(expected),
            tags=tuple(name_of(tag) for tag in (tags.split(";") if isinstance(tags, str) else tags or ()) if tag),
            weight=1.0 if weight is None or weight < 0 else weight,
            metadata=tidy({name: row.get(name) for name in self._extra}),
            **texts,
        )

    def _cell(self, row: dict[str, Any], name: str) -> Any:
        column = self._found.get(name)
        return None if column is None else row.get(column)

    def _text(self, row: dict[str, Any], name: str) -> str | None:
        value = self._cell(row, name)
        return None if value is None or value == "" else name_of(value)

    def _arm(self, row: dict[str, Any]) -> str:
        parts = [self._text(row, "arm") or self._default_arm, self._text(row, "condition")]
        return "/".join(part for part in parts if part)

    def _latency(self, row: dict[str, Any]) -> float | None:
        number = number_of(self._cell(row, "latency"))
        return None if number is None or number < 0 else number * (1000 if self._seconds else 1)


def _find(names: list[str], columns: Columns) -> dict[str, str]:
    """Return which column is which: those that the user names, and those with the usual names for the rest."""
    found = {name: value for name in columns.__struct_fields__ if (value := getattr(columns, name)) is not None}
    folded: dict[str, str] = {}
    for name in names:
        folded.setdefault(_folded(str(name)), name)
    for ours, usual in {**_USUAL, **_MORE}.items():
        if ours in found:
            continue
        for name in usual:
            column = folded.get(_folded(name))
            if column is not None and column not in found.values():
                found[ours] = column
                break
    return found


def _folded(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())
