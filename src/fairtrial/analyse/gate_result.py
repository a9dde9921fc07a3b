"""The result of a gate: every check, one verdict, and what to read before trusting it."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairtrial.analyse.caveats import Caveat
from fairtrial.analyse.gate_reasons import NoBaseline, PassedAnswers, Reason, Settle, SeveralChecks, StatedReason
from fairtrial.core.showing import Shown
from fairtrial.stats.units import Interval, Measured

Result = Literal["passed", "failed", "cannot tell"]
Unsure = Literal["pass", "fail", "101"]  # the outcome of a gate that cannot tell
EXIT_CODES: dict[Result, int] = {"passed": 0, "failed": 100, "cannot tell": 101}


class GateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement checked for one arm: numbers are 0–1, and `message` says why it has its result."""

    name: str
    arm: str
    result: Result
    reason: Reason = msgspec.field(name="message")
    value: Measured | None = None
    interval: Interval | None = None
    limit: Measured | None = None
    metric: str = ""  # whose scale the numbers are on; empty: they are shares
    unmet: list[PassedAnswers] = msgspec.field(name="cases", default_factory=list)  # cases that do not fulfil a rule

    @property
    def message(self) -> str:
        """Why it passed, failed or is undecided."""
        return str(self.reason)

    @property
    def cases(self) -> list[str]:
        """The cases that do not fulfil a rule about cases, each with how many of its answers passed."""
        return list(map(str, self.unmet))


class Flaky(msgspec.Struct, frozen=True, kw_only=True):
    """A case of which some answers passed and others did not, before anything was changed."""

    case: str
    arm: str
    passed: int
    answers: int


class Gate(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """Every check, the overall result, and notes to read before trusting it."""

    run_ids: list[str]
    against: list[str]
    checks: list[GateCheck]
    caveats: list[Caveat] = msgspec.field(name="notes", default_factory=list)
    unsure: Unsure = "101"
    flaky: list[Flaky] = []  # cases whose answers differ without any change, up to 200 of them
    flaky_count: int = 0
    quarantined: list[str] = []  # cases that the suite leaves out
    origin: StatedReason | NoBaseline | None = msgspec.field(name="baseline", default=None)
    adjusted: SeveralChecks | None = msgspec.field(name="method", default=None)
    settle: list[Settle] = []  # what would decide the checks that are undecided

    @property
    def notes(self) -> list[str]:
        """What to read before trusting it."""
        return list(map(str, self.caveats))

    @property
    def baseline(self) -> str:
        """Which run it was compared with, and how that was found; or why there was none."""
        return str(self.origin or "")

    @property
    def method(self) -> str:
        """How several checks are adjusted together."""
        return str(self.adjusted or "")

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
        return self.origin is not None and not self.against

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
