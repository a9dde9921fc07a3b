"""Why a check of a gate passed, failed or is undecided: facts, which `present/words/gates.py` words."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import msgspec

from fairtrial.analyse.comparison import Bound
from fairtrial.core.showing import ResultFact
from fairtrial.stats.units import Interval


class _Reason(ResultFact, frozen=True, kw_only=True):
    subject: ClassVar = "gates"


class Settle(msgspec.Struct, frozen=True, kw_only=True):
    """What would decide an undecided check if the difference is as large as it seems: the total, not the addition."""

    name: str
    arm: str
    cases: int  # as they are answered now
    repeats: int | None  # answers to each of these cases; None if no number of them would do
    now: int  # answers to each case so far
    noise_known: bool  # whether it is known how much answers to a case vary; if not, `repeats` is what measures it


class StatedReason(_Reason, frozen=True, kw_only=True):
    """What whoever asked for the gate says."""

    text: str


class PlainReason(_Reason, frozen=True, kw_only=True):
    """A reason without numbers."""

    what: Literal[
        "unchanged",  # every answer was reused
        "new_arm",
        "arm_gone",
        "unscored",  # in one of the two runs
        "nothing_common",
        "nothing_common_there",  # no such cases
        "stopped_early",
    ]
    baseline: str = ""


class NoBaseline(_Reason, frozen=True, kw_only=True):
    """No run to compare with was named; `needed` are the demands that need one."""

    needed: list[str]


class CoverageReason(_Reason, frozen=True, kw_only=True):
    """How many trials have a score, and the least share that must."""

    scored: int
    planned: int
    least: float


class MinimumReason(_Reason, frozen=True, kw_only=True):
    """The mean of an arm and the least that it must be."""

    mean: float | None
    bounds: Interval | None
    least: float
    metric: str
    level: float
    these_cases: bool
    failures: int = 0  # of trials, where they leave the minimum open
    with_failures: float | None = None  # the mean with those


class DifferenceReason(_Reason, frozen=True, kw_only=True):
    """The difference of an arm to the baseline, and the loss that is accepted."""

    difference: float
    bounds: Interval | None
    cases: int
    margin: float
    metric: str
    level: float
    these_cases: bool
    baseline: str
    expected_cases: int = 0  # where too few of them could be compared
    worst: Bound | None = None  # where failed trials leave open what it passed
    settle: Settle | None = None


class ClaimReason(_Reason, frozen=True, kw_only=True):
    """The difference in a category or a guard, as it is shown, and the limit."""

    value: float
    bounds: Interval | None
    cases: int
    limit: float
    metric: str
    percent: bool  # the numbers are shares of the baseline
    guard: Literal["", "loss", "rise"]  # what of is limited; empty for a category
    level: float
    alike: bool = False  # all cases differ by the same
    with_failures: bool = False  # it would not pass with every failed trial counted against the arm


class PassedAnswers(_Reason, frozen=True, kw_only=True):
    """How many answers to a case passed."""

    case: str
    passed: int
    answers: int


class RuleReason(_Reason, frozen=True, kw_only=True):
    """A rule about single cases: how many answers must pass, None for all; and the cases that are not as they must."""

    k: int | None
    cases: int
    broken: list[PassedAnswers]
    unknown: list[PassedAnswers]
    flaky: list[PassedAnswers]


class SeveralChecks(_Reason, frozen=True, kw_only=True):
    """How many statistical checks share the error level."""

    checks: int
    level: float


class ChangedSince(_Reason, frozen=True, kw_only=True):
    """What differs from the baseline: an arm in some of its parts, or something that all arms share."""

    what: Literal["new", "parts", "gone", "cases", "judges"]
    arms: list[str] = []
    parts: list[str] = []


Reason: TypeAlias = (
    StatedReason | PlainReason | NoBaseline | CoverageReason | MinimumReason | DifferenceReason | ClaimReason
    | RuleReason
)  # fmt: skip
