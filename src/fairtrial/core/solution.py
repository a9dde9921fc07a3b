"""The solution that a case names: what `fairtrial audit` holds its check against."""

from __future__ import annotations

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.types_in_threads import look_into


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """A known good solution: what a right answer says, and what is right in the workspace."""

    answer: str = ""
    files: tuple[str, ...] = ()  # put into the workspace, relative to the suite
    patch: str = ""  # a diff, relative to the suite
    run: str = ""  # a shell script

    @property
    def in_workspace(self) -> bool:
        """Whether it does anything in the workspace."""
        return bool(self.files or self.patch or self.run)


def solution_of(case: Case) -> Solution | None:
    """Return the solution that a case names, if it does."""
    given = (case.metadata or {}).get("solution")
    return msgspec.convert(given, Solution) if isinstance(given, dict) and given else None


look_into(Solution)
