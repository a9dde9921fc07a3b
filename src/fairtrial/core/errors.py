"""What goes wrong, in two kinds.

FairtrialError            a person must do something: one sentence says what; the command ends with its exit code
├── ProblemsError         a suite has problems, all of them together
├── StoreError            the store cannot be read or written
│   ├── StoreLockedError  another program holds it, and may let go of it
│   └── BadRowError       a row that it cannot hold; others it can
├── TargetUnusableError   a target can never answer as configured (key, model name, address)
├── NotInstalledError     an extra is missing
└── InterruptedWorkError  somebody pressed Ctrl-C; what was done is saved

A failed *call* is not among them: it is a value, `core.answer.Failure`, and never ends a run.
"""

from __future__ import annotations

import msgspec


class FairtrialError(Exception):
    """One sentence for a person: what is wrong and what to do about it."""

    exit_code = 1


class Problem(msgspec.Struct, frozen=True):
    """One thing wrong in a suite, with the place where it is written."""

    message: str
    file: str = ""
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (place, self.key, self.message) if part)


class ProblemsError(FairtrialError):
    """Every problem found in a suite, reported together."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


class StoreError(FairtrialError):
    """The store cannot be opened, read or written."""


class StoreLockedError(StoreError):
    """Another program holds the store; it may let go of it."""


class BadRowError(StoreError):
    """A row that no store can hold; its neighbours are stored."""


class TargetUnusableError(FairtrialError):
    """A target cannot answer anything as it is configured."""


class NotInstalledError(FairtrialError):
    """A part needs an extra that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra `{extra}`: pip install 'fairtrial[{extra}]'")
        self._parts = (what, extra)

    def __reduce__(self) -> tuple[type[NotInstalledError], tuple[str, str]]:
        return type(self), self._parts  # so that it can cross from one process to another


class InterruptedWorkError(FairtrialError):
    """Work was interrupted by a person; what was done is saved."""

    exit_code = 130
