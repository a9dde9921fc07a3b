"""What the experiments need to know of a tool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from fairtrial.foreign.results import Columns, Sample, Source, reader_of

KEY = "not-a-key-12345678"
EXPECTED = "42"


class Job(NamedTuple):
    """So many questions for one server, so many at once, in an empty folder."""

    folder: Path
    url: str
    count: int
    concurrency: int

    @property
    def questions(self) -> list[str]:
        """The questions, each different."""
        return [question(number) for number in range(self.count)]


class Command(NamedTuple):
    """A process to start; `allowed` are the exit codes that mean that it did its work."""

    arguments: list[str]
    variables: dict[str, str] = {}
    allowed: tuple[int, ...] = (0,)


class Outcome(NamedTuple):
    """What a tool made of its questions."""

    right: int
    wrong: int
    failed: int  # recorded as failed, without a score

    @property
    def total(self) -> int:
        """All that it has a record of."""
        return sum(self)


class Tool(ABC):
    """One tool. `program` is the folder with its programs once it is installed."""

    name: ClassVar[str]
    address: ClassVar[str]  # where it is found
    note: ClassVar[str] = ""  # how it was used, where that is a choice

    def __init__(self, cache: Path) -> None:
        self.cache = cache

    @abstractmethod
    def install(self) -> str:
        """Make the environment if it is missing; return the version."""

    @abstractmethod
    def command(self, job: Job) -> Command:
        """Write what the tool needs into the folder, and return how it is started."""

    def resume(self, job: Job) -> Command | None:
        """Return how a run that was killed goes on; None if the tool cannot."""
        return None

    @abstractmethod
    def log_files(self, folder: Path) -> list[Path]:
        """Return the files in which the results are."""

    def outcome(self, folder: Path) -> Outcome | None:
        """Return what became of the questions; None if the tool records nothing."""
        return None

    def viewer(self, job: Job, port: int) -> tuple[Command, str, str] | None:
        """Return how the viewer is started, the path to open, and a selector of the rows; None if there is none."""
        return None


def question(number: int) -> str:
    """The question of this number."""
    return f"Question {number}: what is the answer?"


def counted(samples: Iterator[Sample], metric: str | None = None) -> Outcome:
    """Count samples of another tool's log by the given metric, or by the first that each has."""
    right = wrong = failed = 0
    for sample in samples:
        value = next(iter(sample.scores.values()), None) if metric is None else sample.scores.get(metric)
        if sample.failure is not None or value is None:
            failed += 1
        elif value >= 1:
            right += 1
        else:
            wrong += 1
    return Outcome(right, wrong, failed)


def read_log(format: str, files: list[Path], metric: str | None = None) -> Outcome:
    """Read the newest log with the reader of `fairtrial import results`."""
    logs = list(reader_of(format).read([Source(file) for file in files], Columns()))
    return counted(logs[-1].samples(), metric)


def size_of(files: list[Path]) -> int:
    """Return the bytes of the files."""
    return sum(file.stat().st_size for file in files)
