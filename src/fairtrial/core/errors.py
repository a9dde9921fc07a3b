"""Exceptions.

FairtrialError            the user has to act: one sentence says what to do; the command ends with its exit code
├── ProblemsError         all problems of a suite, reported together
├── StoreError            the store cannot be read or written
│   ├── StoreBusyError    the store cannot be used for now; nothing was written, and waiting may help
│   │   ├── StoreLockedError       another program has locked it
│   │   ├── StoreUnreachableError  the connection to the database was lost
│   │   ├── StoreFullError         the disk of the database's server is full
│   │   └── StoreReadOnlyError     the database takes no changes, as while another server takes its place
│   ├── StoreAwayError    it could not be used for so long that the work on a run has ended
│   ├── BadRowError       the store cannot hold this row; other rows are not affected
│   └── RunLostError      another process has taken over the run that this session worked on
├── NoSuchRunError        no run of the store has the name
├── TargetUnusableError   a target can never answer as configured (key, model name, address)
├── WorkersGoneError      no worker of a run is left, and none can be started
├── NotInstalledError     an extra is missing
├── WorkFirstError        something has to be worked out first, which takes a while
└── InterruptedWorkError  the user pressed Ctrl-C; completed work is saved

A failed *call* is not an exception: it is a value, `core.answer.Failure`, and never ends a run.
"""

from __future__ import annotations

import msgspec

from fairtrial.text.printable import one_line, paired

_LONGEST_LINE = 1000  # characters: what is quoted may be of any length


class FairtrialError(Exception):
    """An error for the user: one sentence that says what is wrong and what to do about it."""

    exit_code = 1

    def __str__(self) -> str:
        return "\n".join(map(_shortened, super().__str__().split("\n")))


def _shortened(line: str) -> str:
    """Leave out the middle of a line that is too long to read; what to do about it comes at its end."""
    half, line = _LONGEST_LINE // 2, paired(line)
    return line if len(line) <= _LONGEST_LINE else f"{line[:half]} … {line[-half:]}"


class Problem(msgspec.Struct, frozen=True):
    """One problem in a suite, with its location."""

    message: str
    file: str = ""
    line: int = 0
    key: str = ""

    def __post_init__(self) -> None:
        for name, text in (("message", self.message), ("key", self.key)):
            if len(text) > _LONGEST_LINE or not text.isprintable():
                msgspec.structs.force_setattr(self, name, _shortened(one_line(text)))

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


class StoreBusyError(StoreError):
    """The store cannot be used for now; nothing was written, and waiting may help."""

    reason = "the store is busy"  # shown while a run waits


class StoreLockedError(StoreBusyError):
    """Another program has locked the store; the lock may be released."""

    reason = "another program has locked the store"


class StoreUnreachableError(StoreBusyError):
    """The database does not respond, or the connection to it was lost; it may come back."""

    reason = "the database cannot be reached"


class StoreFullError(StoreBusyError):
    """The disk of the database's server is full; whoever looks after it may make room."""

    reason = "the disk of the database is full"


class StoreReadOnlyError(StoreBusyError):
    """The database takes no changes, as while another server takes its place; it may take some again."""

    reason = "the database is read-only"


class StoreAwayError(StoreError):
    """The store was out of use for too long, or has lost rows that were stored: the work on a run has ended."""

    exit_code = 2


class BadRowError(StoreError):
    """A row that the store cannot hold; other rows are stored."""


class RunLostError(StoreError):
    """Another process has taken over the run, or deleted it: this session can add nothing to it any more."""

    exit_code = 2


class NoSuchRunError(FairtrialError):
    """A name that no run of the store has."""


class TargetUnusableError(FairtrialError):
    """A target can never answer as configured."""


class WorkersGoneError(FairtrialError):
    """No worker is left, and none could be started for as long as a run waits for one."""

    exit_code = 2


class NotInstalledError(FairtrialError):
    """A feature needs an extra that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra `{extra}`: pip install 'fairtrial[{extra}]'")
        self._parts = (what, extra)

    def __reduce__(self) -> tuple[type[NotInstalledError], tuple[str, str]]:
        return type(self), self._parts  # makes it picklable across processes


class WorkFirstError(FairtrialError):
    """Something has to be worked out first, which takes longer than anyone waits for a page."""

    work = ""  # what, in a few words


class InterruptedWorkError(FairtrialError):
    """The user interrupted the work; completed work is saved."""

    exit_code = 130
