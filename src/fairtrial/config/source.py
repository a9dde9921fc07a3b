"""YAML parsing that keeps the line of every value and the spelling of scalars."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

import msgspec
import yaml

from fairtrial.core import registry
from fairtrial.core.errors import Problem, ProblemsError
from fairtrial.core.functions import Functions
from fairtrial.core.options import Path, scorer_problems
from fairtrial.core.variables import PLACEHOLDER, Variables, has_bad_reference
from fairtrial.text.yaml_text import FREE_NODES, LOADER, NODES_PER_CHARACTER, check_yaml, reason_of

_MERGE = "tag:yaml.org,2002:merge"


class SuiteSource:
    """The parsed text of a suite: its value, and the line of each part; paths in it are relative to `folder`."""

    def __init__(self, text: str, file: str, variables: Variables, folder: FilePath = FilePath()) -> None:
        self.text, self.file, self.folder = text, file, folder
        self.functions: Functions = {}  # given in Python, without an importable name
        self.problems: list[Problem] = []
        self.files: list[FilePath] = []  # texts that are in files of their own
        self.variables = variables
        self._lines: dict[Path, int] = {}
        self.spelling: dict[Path, str] = {}
        self._nodes_left = FREE_NODES + NODES_PER_CHARACTER * len(text)
        self.unset: set[Path] = set()  # values with an unset variable: their type cannot be checked
        self.value = self._parse(text)

    @classmethod
    def of_value(
        cls, value: Any, text: str, file: str, variables: Variables, folder: FilePath, functions: Functions
    ) -> SuiteSource:
        """Return the source of a suite that is not a text; variables are filled in, except in cases, which are data."""
        source = cls.__new__(cls)
        source.text, source.file, source.folder, source.functions = text, file, folder, functions
        source.problems, source.files, source.variables = [], [], variables
        source._lines, source.spelling, source.unset = {}, {}, set()
        source.value = {key: item if key == "cases" else source._filled(item, (key,)) for key, item in value.items()}
        return source

    def _filled(self, value: Any, path: Path) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item, (*path, index)) for index, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        live = self._live(value, path)
        if live == value:
            self.spelling[path] = value
        return live

    def _parse(self, text: str) -> Any:
        try:
            check_yaml(text, aliases=False)
            loader = LOADER(text)
            try:
                node = loader.get_single_node()
                return None if node is None else self._construct(loader, node, ())
            finally:
                loader.dispose()
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark else 0
            reason = reason_of(error).removesuffix(f" in line {line}")
            raise ProblemsError([Problem(f"invalid YAML: {reason}", self.file, line)]) from None
        except RecursionError:
            raise ProblemsError([Problem("an anchor refers to itself, or nesting is too deep", self.file, 1)]) from None

    def _construct(self, loader: Any, node: Any, path: Path) -> Any:
        self._lines[path] = node.start_mark.line + 1
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise yaml.MarkedYAMLError(
                problem="aliases make the suite far larger than its text", problem_mark=node.start_mark
            )
        if isinstance(node, yaml.MappingNode):
            self._find_duplicates(node, path)
            _merge(node)
            return self._mapping(loader, node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._construct(loader, item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(loader, node, path)

    def _find_duplicates(self, node: Any, path: Path) -> None:
        seen = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen and key_node.tag != _MERGE:
                self.problem((*path, key), "duplicate key", line=key_node.start_mark.line + 1)
            seen.add(key)

    def _mapping(self, loader: Any, node: Any, path: Path) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            mapping[key] = self._construct(loader, value_node, (*path, key))
            self._lines[(*path, key)] = key_node.start_mark.line + 1
        return mapping

    def _scalar(self, loader: Any, node: Any, path: Path) -> Any:
        live = self._live(node.value, path)
        if live != node.value:
            return live
        self.spelling[path] = node.value
        try:
            value = loader.construct_object(node)
        except ValueError as error:
            self.problem(path, f"{node.value!r} cannot be read: {error}")
            return None
        # YAML has dates and other types; suites allow only those of JSON.
        return value if value is None or isinstance(value, str | int | float | bool) else node.value

    def _live(self, text: str, path: Path) -> str:
        """Return a text with its variables filled in; what is wrong with them is a problem."""
        missing = set(self.variables.missing)
        live = self.variables.fill(text)
        for name in sorted(self.variables.missing - missing):
            self.problem(path, f"the variable {name} is not set")
            self.unset.add(path)
        if self.variables.assumed and live != text and PLACEHOLDER in live:
            self.unset.add(path)
        if has_bad_reference(text):
            self.problem(path, "`${` must start ${VAR} or ${VAR:-default}; write $${ for a literal ${")
        return live

    def line(self, path: Path) -> int:
        """Return the line of a path, or of its nearest parent."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 0)

    def problem(self, path: Path, message: str, *, line: int = 0) -> None:
        """Record a problem at a path."""
        key = ".".join(str(part) for part in path)
        self.problems.append(Problem(message, self.file, line or self.line(path), key))

    def hidden_problems(self) -> list[Problem]:
        """Return the problems with the values of variables hidden."""
        hide = self.variables.hide
        return [msgspec.structs.replace(p, message=hide(p.message), key=hide(p.key)) for p in self.problems]

    def as_text(self, path: Path, value: Any) -> str | None:
        """Return a scalar as it was spelled (`yes`, `1e3`, `007` stay as they are); None if it is not a scalar."""
        if isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return self.spelling.get(path, str(value).lower() if isinstance(value, bool) else str(value))
        return None


def _merge(node: Any, inside: tuple[int, ...] = ()) -> None:
    """Replace the merge keys (`<<`) of a mapping by what they stand for; its own keys take precedence."""
    if id(node) in inside:
        raise RecursionError
    own = [(key, value) for key, value in node.value if key.tag != _MERGE]
    merged: dict[str, Any] = {}
    for key, value in node.value:
        for source in _merge_sources(value) if key.tag == _MERGE else ():
            _merge(source, (*inside, id(node)))
            merged = {**{pair[0].value: pair for pair in source.value}, **merged}
    if len(own) < len(node.value):
        names = {key.value for key, _ in own}
        node.value = [pair for name, pair in merged.items() if name not in names] + own


def _merge_sources(value: Any) -> list[Any]:
    sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
    if not all(isinstance(source, yaml.MappingNode) for source in sources):
        raise yaml.MarkedYAMLError(problem="`<<` takes a mapping, or a list of mappings", problem_mark=value.start_mark)
    return sources


def check_choice(source: SuiteSource, what: str, chosen: tuple[str, ...], names: list[str]) -> None:
    """Report what was selected by name, such as a target, and is not in the suite."""
    for name in chosen:
        if name not in names:
            source.problem((), f"--{what} {name}: there is no such {what}{registry.nearest(name, names)}")


def check_scorer(source: SuiteSource, path: Path, scorer: Any) -> None:
    """Report what is wrong with a scorer."""
    if scorer is not None:
        for inner, message in scorer_problems(scorer):
            source.problem((*path, *inner), message)
