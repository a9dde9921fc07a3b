"""What an audit found: a row for every case and probe."""

from __future__ import annotations

from importlib import import_module
from typing import Literal

import msgspec

# sound: as it should be · finding: it is not · missing: there is no solution to try · unchecked: it could not be tried
Status = Literal["sound", "finding", "missing", "unchecked"]
_WORDS = f"{__package__}.words"  # they word rows, which do not know them


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """One probe of one case."""

    case: str
    probe: str
    status: Status
    what: str = ""  # what was tried, of a finding; otherwise why there is none
    passed: int = 0  # of what was tried
    tried: int = 0
    notes: str = ""  # in the words of the check
    arm: str = ""  # where a case is checked differently under different arms

    def __str__(self) -> str:
        sentence: str = import_module(_WORDS).sentence(self)
        return sentence


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the tasks of a suite are sound."""

    suite: str
    probes: tuple[str, ...]
    rows: tuple[AuditRow, ...]
    notes: tuple[str, ...] = ()

    def of(self, status: Status) -> tuple[AuditRow, ...]:
        """Return the rows with this status."""
        return tuple(row for row in self.rows if row.status == status)

    @property
    def findings(self) -> tuple[AuditRow, ...]:
        """What is wrong."""
        return self.of("finding")

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases that were looked at."""
        return tuple(dict.fromkeys(row.case for row in self.rows))

    @property
    def sound(self) -> bool:
        """Whether nothing wrong was found; what could not be tried is not counted."""
        return not self.findings

    def __repr__(self) -> str:
        return f"<Audit of {self.suite}: {import_module(_WORDS).headline(self)}>"

    def _repr_html_(self) -> str:
        shown: str = import_module(f"{__package__}.page").as_html(self)
        return shown
