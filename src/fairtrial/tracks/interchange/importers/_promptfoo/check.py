"""What all assertions share: the check that a configuration asks for, and the scorer that makes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from fairtrial.tracks.interchange.importers._promptfoo.code import CodeFile
from fairtrial.tracks.interchange.importers._promptfoo.files import Folder
from fairtrial.tracks.interchange.importers._promptfoo.notes import Notes

Scorer = dict[str, Any]


class Check(NamedTuple):
    """An assertion in one test: its parts after templates were filled in."""

    kind: str
    value: Any
    threshold: float | None
    entry: dict[str, Any]
    where: str
    values: dict[str, Any] = {}  # the variables of the test


class Result(NamedTuple):
    """A scorer, and the text that it compares answers with, if it does; without a scorer, nothing is to be scored."""

    scorer: Scorer
    reference: str | None = None


class Workshop(NamedTuple):
    """What is at hand to make a scorer."""

    folder: Folder
    notes: Notes
    code: CodeFile
    tools: list[Any]  # the tools that providers offer to their models
    embedder: Callable[[Any], str | None]  # the name of a model that makes embeddings


Make = Callable[[Check, Workshop], Result | None]


def limited(scorer: Scorer, threshold: float | None) -> Scorer:
    """Return a scorer with a threshold, if there is one."""
    return scorer if threshold is None else {**scorer, "threshold": threshold}


def words_of(value: Any, *, several: bool) -> list[str]:
    """Return the texts of a value; in short forms, commas are between `several`."""
    if several and isinstance(value, str):
        return [word.strip().strip('"') for word in value.split(",") if word.strip()]
    return [text_of(item) for item in (value if isinstance(value, list) else [value])]


def text_of(value: Any) -> str:
    """Return a value as text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def parsed(text: str) -> Any:
    """Return what a text says as YAML or JSON; None if it is neither."""
    import yaml

    from fairtrial.text.yaml_text import read_yaml  # yaml: few checks need it

    try:
        return read_yaml(text)
    except yaml.YAMLError:
        return None


def number_of(value: Any) -> float | None:
    """Return a value as a number; None if it is none."""
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def given_or(value: float | None, default: float) -> float:
    """Return a number, or another one if there is none."""
    return default if value is None else value
