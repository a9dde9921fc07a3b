"""The result of a gate: every check, one verdict, and what to read before trusting it."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairtrial.core.showing import Shown
from fairtrial.stats.units import Interval, Measured

Result = Literal["passed", "failed", "cannot tell"]
Unsure = Literal["pass", "fail", "101"]  # the outcome of a gate that cannot tell
EXIT_CODES: dict[Result, int] = {"passed": 0, "failed": 100, "cannot tell": 101}


class GateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement checked for one arm, in words and in numbers (scores 0–1)."""

    name: str
    arm: str
    result: Result
    message: str
    value: Measured | None = None
    interval: Interval | None = None
    limit: Measured | None = None
    metric: str = ""  # whose scale the numbers are on; empty: they are shares
    cases: list[str] = []  # that do not fulfil a rule about cases


class Flaky(msgspec.Struct, frozen=True, kw_only=True):
    """A case of which some answers passed and others did not, before anything was changed."""

    case: str
    arm: str
    passed: int
    answers: int


class Settle(msgspec.Struct, frozen=True, kw_only=True):
    """What would decide an undecided check if the difference is as large as it seems: the total, not the addition."""

    name: str
    arm: str
    cases: int  # as they are answered now
    repeats: int | None  # answers to each of these cases; None if no number of them would do
    now: int  # answers to each case so far
    noise_known: bool  # whether it is known how much answers to a case vary; if not, `repeats` is what measures it


class Gate(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """Every check, the overall result, and notes to read before trusting it."""

    run_ids: list[str]
    against: list[str]
    checks: list[GateCheck]
    notes: list[str] = []
    unsure: Unsure = "101"
    flaky: list[Flaky] = []  # cases whose answers differ without any change, up to 200 of them
    flaky_count: int = 0
    quarantined: list[str] = []  # cases that the suite leaves out
    baseline: str = ""  # which run it was compared with, and how that was found; or why there was none
    method: str = ""  # how several checks are adjusted together
    settle: list[Settle] = []  # what would decide the checks that are undecided

    def __repr__(self) -> str:
        reasons = "; ".join(gate_line(check) for check in self.checks if check.result != "passed")
        return f"<Gate {self.result}{': ' if reasons else ''}{reasons}>"

    def __bool__(self) -> bool:
        """Whether it passed: `assert ft.gate(run, min_score=80)`; what nobody can tell has not passed."""
        return self.result == "passed"

    @property
    def result(self) -> Result:
        """Return `failed` if any check failed, else `cannot tell` if any check is undecided, else `passed`."""
        results = {check.result for check in self.checks}
        return "failed" if "failed" in results else "cannot tell" if "cannot tell" in results else "passed"

    @property
    def lacks_baseline(self) -> bool:
        """Whether there was nothing to compare with, though that was needed."""
        return bool(self.baseline) and not self.against

    @property
    def compared_with(self) -> str:
        """Which run the baseline is; empty if there is none, which a check says."""
        return "" if self.lacks_baseline else self.baseline

    @property
    def exit_code(self) -> int:
        """Return 0, 100 or 101; `unsure` sets the code for `cannot tell`."""
        if self.result == "cannot tell":
            return {"pass": 0, "fail": 100, "101": 101}[self.unsure]
        return EXIT_CODES[self.result]


def gate_line(check: GateCheck) -> str:
    """Format one check as one line."""
    return f"{check.result}: {check.name} of {check.arm}: {check.message}"
