"""Suites that are made in Python: the keys of a file, where functions, objects and tables may stand for names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from fairtrial.config.rows import COLUMNS, ROW_KEYS, GivenRows, is_frame, plain_cell, rows_of_frame
from fairtrial.config.source import SuiteSource
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.core.fingerprint import code_hash
from fairtrial.core.functions import MARK, Function, importable_name, is_given, own_name, plain_name
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.variables import Variables, escape_all

NAME = "suite"  # in messages, where a file would stand
_TARGETS = ("targets", "judge", "judges", "second_judge", "user")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")

Scorer = str | Mapping[str, Any] | Callable[..., Any]
Target = str | Mapping[str, Any] | Callable[..., Any] | Any  # Any: an object with `invoke`


@dataclass(frozen=True)
class Case:
    """One question, and what its answers are scored against: `ft.Case("Capital of France?", expected="Paris")`.

    What you leave out comes from `case_defaults`, else from the usual defaults.

    Args:
        input: The question.
        expected: The right answer, a pattern or a number, depending on the scorer; in a list, any is right.
        id: Its name in all outputs; default: its number.
        turns: Instead of `input`: what the user says, each after an answer; the last answer is scored. A mapping with
            `input` may have a `check` of its own, or `expected`.
        turns_score: How these checks enter the score: their mean (default), the lowest (`all`), or not at all (`last`).
        attach: Images, PDFs or text files to send with `input`.
        vars: Values for templates, `{{ name }}` in prompts.
        weight: Its weight in the mean; 0 is shown but not counted.
        tags: Words to group cases by, like `category` and `difficulty`.
        cluster: Cases with the same cluster are not independent.
        scorer: A scorer's name, a mapping with options, or a function.
        extract: Which part of its answers is scored.
        choices: The choices of a multiple-choice question.
        params: Sampling parameters, such as `{"temperature": 0}`.
        repeats: How many times it is answered.
        on_limit: What a limit is that an agent reaches: `check`, `wrong` or `fail`.
        targets: The targets that are asked, by `id`; default: all.
        conditions: The conditions (or prompts) under which it is asked; default: all.
        checks: What a page must do, for `browser` and `code_judge`.
        tools: The tool calls that it asks for, names or mappings with `name` and `arguments`; empty: none.
        metadata: Anything else to keep with it.
        forbidden: The tool calls that must not be made, names or mappings with `tool` and `arguments`.
        skill: Whether the skill is to fire here (`"fires"`) or not (`"silent"`); of several, a mapping by name.
        solution: A known good solution, for `fairtrial.audit`: an answer, or a mapping with `files`, `patch` or `run`.
    """

    input: str | None = None
    expected: Any = None
    id: str | None = None
    turns: Sequence[str | Mapping[str, Any]] | None = None
    turns_score: Literal["mean", "all", "last"] | None = None
    attach: str | Sequence[str] | None = None
    vars: Mapping[str, Any] | None = None
    weight: float | None = None
    tags: Sequence[str] | None = None
    category: str | None = None
    difficulty: str | None = None
    cluster: str | None = None
    scorer: Scorer | None = None
    extract: str | Mapping[str, Any] | None = None
    choices: Sequence[str] | None = None
    params: Mapping[str, Any] | None = None
    repeats: int | None = None
    on_limit: Literal["check", "wrong", "fail"] | None = None
    targets: Sequence[str] | None = None
    conditions: Sequence[str] | None = None
    checks: Sequence[Mapping[str, Any]] | None = None
    tools: Sequence[str | Mapping[str, Any]] | None = None
    metadata: Mapping[str, Any] | None = None
    forbidden: Sequence[str | Mapping[str, Any]] | None = None
    skill: str | Mapping[str, str] | None = None
    solution: str | Mapping[str, Any] | None = None

    def as_entry(self) -> dict[str, Any]:
        """Return what is given, under the keys of a suite file."""
        given = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in given if value is not None}


class Made:
    """What a suite made in Python consists of, in addition to its source."""

    def __init__(self, keys: Mapping[str, Any], variables: Variables, folder: Path = Path()) -> None:
        self.functions: dict[str, Function] = {}  # those without an importable name
        self.code: dict[str, str] = {}  # hashes of all functions
        self.rows: GivenRows | None = None
        self._problems: list[tuple[KeyPath, str]] = []
        self.value = value = self._read(keys)
        text = suite_text(value, self.rows, self.code)
        self.source = SuiteSource.of_value(self._live(value), text, NAME, variables, folder, self.functions)
        for path, message in self._problems:
            self.source.problem(path, message)

    def _read(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys as plain data."""
        given = {name: value for name, value in keys.items() if value is not None}
        value = {name: self._plain(item, (name,)) for name, item in given.items() if name not in ("cases", "dataset")}
        dataset = given.get("dataset")
        if dataset is not None:
            value["dataset"] = self._dataset(dataset)
        if "cases" in given:
            self._add_cases(value, given["cases"])
        return value

    def _dataset(self, dataset: Any) -> Any:
        """Return a dataset; its `path` may be rows."""
        entry = dict(dataset) if isinstance(dataset, Mapping) else {"path": dataset}
        path = entry.get("path")
        if path is None or isinstance(path, str | Path):
            return self._plain(entry, ("dataset",))
        rows = rows_of_frame(path) if is_frame(path) else iter(path)
        self.rows = GivenRows(rows, self._cell)
        named = {name: name for name in COLUMNS if name not in entry}
        return self._plain({**named, **entry, "path": None}, ("dataset",))

    def _add_cases(self, value: dict[str, Any], cases: Any) -> None:
        rows = _as_rows(cases)
        if rows is None or isinstance(rows, _Listed):
            given = cases if rows is None else rows
            items = [given] if isinstance(given, Case | Mapping) else list(given)
            value["cases"] = [self._plain(case, ("cases", index)) for index, case in enumerate(items)]
        elif "dataset" in value:
            self._problems.append((("cases",), "rows cannot be combined with a `dataset`: give a list of cases"))
        else:
            value["dataset"] = self._dataset({"path": rows})

    def _cell(self, value: Any) -> Any:
        return self._plain(value, ("cases", "scorer")) if callable(value) else plain_cell(value)

    def _plain(self, value: Any, path: KeyPath) -> Any:
        """Return a value as plain data, with the names of functions in their place."""
        if isinstance(value, Case):
            value = value.as_entry()
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, Path):
            return str(value)
        if isinstance(value, msgspec.Struct):
            value = msgspec.to_builtins(value)
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        if isinstance(value, list | tuple | set | frozenset):
            return [self._plain(item, (*path, index)) for index, item in enumerate(value)]
        if callable(value) or callable(getattr(value, "invoke", None)):
            return self._function(value, path)
        return plain_cell(value)

    def _mapping(self, value: Mapping[Any, Any], path: KeyPath) -> dict[str, Any]:
        plain = {str(key): self._plain(item, (*path, str(key))) for key, item in value.items()}
        target = plain.get("target")
        if isinstance(target, dict):  # a function, which brings its own id
            plain = {**target, **plain, "target": target["target"]}
            if path[0] == "user":
                plain.pop("id")
        return plain

    def _function(self, function: Any, path: KeyPath) -> Any:
        """Return what stands for a function in a suite: a target, a scorer, or what is extracted."""
        name = self._name(function)
        if path[0] in _TARGETS and "scorer" not in path:
            self._check("targets", "python_call", function, path)
            return {"id": plain_name(function), "target": f"python:{name}"}
        if path[-1] == "python":
            if is_given(name):
                self._problems.append((path, f"`{own_name(name)}` has no importable name: move it into a module"))
            return name
        self._check("scorers", "python", function, path)
        return {"type": "python", "function": name}

    def _check(self, family: str, part: str, function: Any, path: KeyPath) -> None:
        reasons = registry.load(family, part).function_problems(plain_name(function), function)
        self._problems += [(path, reason) for reason in reasons]

    def _name(self, function: Any) -> str:
        """Return the name of a function in the plan, and keep the function if nothing else finds it by that name."""
        name, code = importable_name(function), code_hash(function)
        if name is None:
            name = f"{plain_name(function)}{MARK}{code}"
            others = (f"{name}-{number}" for number in range(2, 10**6))  # same code, but another object
            name = next(one for one in chain([name], others) if self.functions.get(one, function) is function)
            self.functions[name] = function
        self.code[name] = code
        return name

    def _live(self, value: dict[str, Any]) -> dict[str, Any]:
        if self.rows is None or not isinstance(value.get("dataset"), dict):
            return value
        return {**value, "dataset": {**value["dataset"], "path": str(self.rows.file)}}


def given_scorer(scorer: Any) -> tuple[Any, dict[str, Function]]:
    """Return a scorer as plain data, and the functions in it that have no importable name."""
    made = Made({"scorer": scorer}, Variables({}))
    if made.source.problems:
        raise ProblemsError(made.source.problems)
    return made.value["scorer"], made.functions


def given_judge(judge: Any) -> tuple[str, dict[str, Function]]:
    """Return the name of a judge, which may be a function or an object, and the function if nothing else finds it."""
    if isinstance(judge, str):
        return judge, {}
    if not (callable(judge) or callable(getattr(judge, "invoke", None))):
        raise FairtrialError(f"a judge is a model's name or a function, not {type(judge).__name__}")
    made = Made({"judge": judge}, Variables({}))
    if made.source.problems:
        raise ProblemsError(made.source.problems)
    return made.value["judge"]["target"], made.functions


def _as_rows(cases: Any) -> Iterable[Any] | None:
    """Return cases that are rows of a table; None if they are cases one by one, which may say more."""
    if is_frame(cases):
        return rows_of_frame(cases)
    if isinstance(cases, list | tuple | Case | Mapping):
        return None
    if isinstance(cases, str) or not isinstance(cases, Iterable):
        kind = type(cases).__name__
        raise FairtrialError(f"`cases` must be a list, a table or an iterator, not {kind}; `dataset` takes a file")
    iterator = iter(cases)
    first = next(iterator, None)
    if first is None:
        return []
    rows = chain([first], iterator)
    own = isinstance(first, Case) or (isinstance(first, Mapping) and not _is_row(first))
    return rows if not own else _Listed(rows)


def _is_row(item: Mapping[str, Any]) -> bool:
    """Return whether a mapping has no keys that only a case can have."""
    return not (item.keys() - ROW_KEYS) & {field.name for field in fields(Case)}


class _Listed(list[Any]):
    """Cases from an iterator, one by one."""


def suite_text(value: dict[str, Any], rows: GivenRows | None, code: Mapping[str, str]) -> str:
    """Return a suite as YAML, one line for each case."""
    head = {name: item for name, item in value.items() if name != "cases"}
    if rows is not None and isinstance(head.get("dataset"), dict):
        head["dataset"] = {**head["dataset"], "path": f"{rows.count} rows given in Python"}
    lines = [f"# code of {name}: {sha}\n" for name, sha in sorted(code.items())]
    lines.append(yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=110) if head else "")
    lines += case_lines(value.get("cases") or ())
    return "".join(lines)


def case_lines(cases: Iterable[Any]) -> Iterator[str]:
    """Yield the lines of a suite's cases; what looks like a variable in them is data."""
    for number, case in enumerate(cases):
        text = json.dumps(escape_all(case), ensure_ascii=False, default=str)
        yield ("cases:\n" if number == 0 else "") + "- " + _UNPRINTABLE.sub(_escaped, text) + "\n"


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def as_yaml(value: dict[str, Any], rows: GivenRows | None) -> str:
    """Return a suite as YAML that needs nothing else; raise if something in it has no name."""
    unnamed = sorted({own_name(name) for name in _given_names(value)})
    if unnamed:
        names = " and ".join(f"`{name}`" for name in unnamed)
        raise FairtrialError(f"{names} has no importable name: move it into a module, then a file can name it")
    if rows is None:
        return suite_text(value, None, {})
    entry = value["dataset"]
    if set(entry) - {"path", *COLUMNS}:
        raise FairtrialError("the rows of `dataset` were given in Python: write them to a file and name that")
    cases = [*(value.get("cases") or ()), *map(_row_case, rows.read())]
    return suite_text({**{key: item for key, item in value.items() if key != "dataset"}, "cases": cases}, None, {})


def _row_case(row: dict[str, Any]) -> dict[str, Any]:
    own = {name: item for name, item in row.items() if name in ROW_KEYS and item is not None}
    columns = {name: item for name, item in row.items() if name not in ROW_KEYS}
    return {**own, "metadata": {"columns": columns}} if columns else own


def _given_names(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in ("target", "function") and isinstance(item, str) and is_given(item):
                yield item.removeprefix("python:")
            yield from _given_names(item)
    elif isinstance(value, list):
        for item in value:
            yield from _given_names(item)
