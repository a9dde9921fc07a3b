"""Readers for results of other tools, one per file: what a tool recorded, as samples.

A reader says whether a file is of its tool (`recognises`) and reads files into logs (`read`), one log per run that the
tool made. Samples are streamed; reading a log again gives the same samples. Nothing here writes to a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from fairtrial.core import registry
from fairtrial.core.answer import Failure, Usage
from fairtrial.core.errors import FairtrialError
from fairtrial.core.expected import Expected
from fairtrial.core.score import Scale
from fairtrial.foreign.source import Source

__all__ = [
    "SCORE",
    "SHARE",
    "Columns",
    "Contestant",
    "Log",
    "Question",
    "Reader",
    "Sample",
    "Source",
    "format_names",
    "picked",
    "reader_of",
    "recognise",
]

FAMILY = "results"
_LAST = "table"  # any other reader is more specific
SCORE = "score"  # the name of a score that the tool does not name
SHARE: Scale = (0.0, 1.0)


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The user's choices: names of columns, or of keys in the metadata of samples; `score` is also a metric's name."""

    case: str | None = None
    arm: str | None = None
    score: str | None = None
    repeat: str | None = None
    category: str | None = None
    difficulty: str | None = None
    cluster: str | None = None
    cost: str | None = None
    latency: str | None = None
    input: str | None = None
    expected: str | None = None
    answer: str | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A case as the tool recorded it; without an input, only its id tells it from others."""

    id: str
    input: str = ""
    expected: Expected = None
    category: str | None = None
    difficulty: str | None = None
    cluster: str | None = None
    tags: tuple[str, ...] = ()
    weight: float = 1.0
    metadata: dict[str, Any] = {}
    arms: tuple[str, ...] = ()  # that were asked; empty: all


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """An arm as the tool recorded it; `params` is None if the tool does not say what was sent."""

    name: str
    model: str = ""
    provider: str = ""
    condition: str = "default"
    system: str = ""
    prompt: str = ""
    params: dict[str, Any] | None = None


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of one arm to one question, with every number that the tool gave it."""

    question: Question
    arm: str
    repeat: int | None = None  # from 0; None: one more answer of this arm to this question
    answer: str | None = None
    failure: Failure | None = None
    scores: dict[str, float] = {}
    unscored: dict[str, str] = {}  # why a metric has no value
    notes: dict[str, str] = {}  # the reasons that were given for scores, by metric
    usage: Usage | None = None
    latency_ms: float | None = None
    waited_ms: float = 0.0
    cost_usd: float | None = None
    finish_reason: str | None = None
    model: str | None = None
    reasoning: str | None = None
    trace: dict[str, Any] | None = None
    details: dict[str, Any] | None = None  # what else the tool says about the scores
    started_at: float | None = None
    tried: tuple[str, ...] = ()


class Log(msgspec.Struct, kw_only=True):
    """One run of another tool.

    Args:
        lineage: What all attempts at the same run share: only the newest of them counts.
        metrics: The metrics in the tool's order, if they are known before the samples are read.
        graded: Whether the tool gives scores; logs of sessions have none.
        unfinished: Why there is less than the tool planned; empty if everything is there.
        notes: What is different from what the tool reports; may grow while samples are read.
        missing: What the tool did not record.
    """

    tool: str
    name: str
    samples: Callable[[], Iterator[Sample]]
    version: str = ""
    part: str = ""  # which part of its files, if they hold several logs
    sources: tuple[Source, ...] = ()
    arms: dict[str, Contestant] = {}
    metrics: tuple[str, ...] = ()
    primary: str | None = None
    scales: dict[str, Scale] = {}
    repeats: int | None = None
    dataset_sha256: str = ""  # as the tool recorded it
    created: float | None = None
    ended: float | None = None
    lineage: str = ""
    graded: bool = True
    unfinished: str = ""
    notes: list[str] = []
    missing: list[str] = []


class Reader(Protocol):
    """Reads the results of one tool."""

    def recognises(self, source: Source) -> bool:
        """Return whether a file holds results of this tool, judged by its content."""

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield the logs in these files; a file that cannot be read raises FairtrialError with one sentence."""


def format_names() -> list[str]:
    """Return the names of all formats as users write them."""
    return [name.replace("_", "-") for name in registry.names(FAMILY)]


def reader_of(name: str) -> Reader:
    """Return the reader of a format."""
    known = format_names()
    if name.replace("_", "-") not in known:
        raise FairtrialError(f"unknown format `{name}`{registry.nearest(name, known)}")
    reader: Reader = registry.load(FAMILY, name)()
    return reader


def recognise(source: Source) -> str | None:
    """Return the format of a file, or None."""
    readers: dict[str, type[Reader]] = registry.parts(FAMILY)
    for name in sorted(readers, key=lambda name: (name == _LAST, name)):
        if readers[name]().recognises(source):
            return name.replace("_", "-")
    return None


def picked(metadata: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """Return category, difficulty and cluster of a question from its metadata, under the user's or the usual names."""
    facts: dict[str, Any] = {}
    for name in ("category", "difficulty", "cluster"):
        value = metadata.get(getattr(columns, name) or name)
        if value is not None and not isinstance(value, dict | list) and str(value).strip():
            facts[name] = str(value)
    return facts
