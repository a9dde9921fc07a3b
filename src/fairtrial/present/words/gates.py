"""Gates in words: why each check passed, failed or is undecided, and what would decide it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import TYPE_CHECKING

from fairtrial.analyse.gate_reasons import (
    ChangedSince,
    ClaimReason,
    CoverageReason,
    DifferenceReason,
    MinimumReason,
    NoBaseline,
    PassedAnswers,
    PlainReason,
    RuleReason,
    Settle,
    SeveralChecks,
    StatedReason,
)
from fairtrial.core.formatting import Scale
from fairtrial.core.showing import ResultFact
from fairtrial.text.printable import counted

if TYPE_CHECKING:
    from fairtrial.analyse.gate_changes import BaselineChanges
    from fairtrial.analyse.gate_result import GateCheck

_SHOWN = 5  # cases to name in a message
_BECAUSE = {
    "unchanged": "unchanged: every answer was reused, because nothing that it depends on has changed",
    "new_arm": "{} has no such arm",
    "arm_gone": "{} has this arm, but this run does not",
    "unscored": "one of the two runs has no score for it",
    "nothing_common": "no cases in common against {}",
    "nothing_common_there": "the two runs have no such cases in common",
    "stopped_early": "one of the two runs could stop early, when its mean was decided: run both without --stop-when",
}


def check_line(check: GateCheck) -> str:
    """Format one check as one line."""
    return f"{check.result}: {check.name} of {check.arm}: {check.message}"


@singledispatch
def in_words(reason: ResultFact) -> str:
    """Return why a check has its result, or what else there is to say about a gate."""
    raise TypeError(f"no one has said how to word a {type(reason).__name__}")


@in_words.register
def _stated(reason: StatedReason) -> str:
    return reason.text


@in_words.register
def _because(reason: PlainReason) -> str:
    return _BECAUSE[reason.what].format(reason.baseline)


def _interval(level: float) -> str:
    """Name the intervals of the statistical checks: 95 % CI, or more for one of several looks."""
    return f"{100 * (1 - level):g} % CI"


@in_words.register
def _no_baseline(reason: NoBaseline) -> str:
    names = " and ".join({"margin": "the margin"}.get(name, name) for name in reason.needed)
    because = f"{names} cannot be checked without one" if names else "only coverage was checked, and no minimum"
    return f"no baseline: {because}. Say which run to compare with: --against auto, branch:main or a run"


@in_words.register
def _coverage(reason: CoverageReason) -> str:
    return f"{reason.scored} of {reason.planned} trials have a score (at least {100 * reason.least:g} %)"


@in_words.register
def _minimum(found: MinimumReason) -> str:
    if found.mean is None:
        return "no score"
    scale, shown = Scale(found.metric), "n = 1"
    if found.these_cases:
        shown = "on these cases"
    elif found.bounds is not None:
        low, high = map(scale.plain, found.bounds)
        shown = f"{_interval(found.level)} {low} to {high}"
    words = f"{scale.plain(found.mean)} ({shown}), at least {scale.plain(found.least)}"
    if found.failures:
        words += (
            f"; with {found.failures} failed trials counted as the worst score, "
            f"it is {scale.plain(found.with_failures)}"
        )
    return words


@in_words.register
def _difference(found: DifferenceReason) -> str:
    scale = Scale(found.metric)
    shown = f"{scale.signed(found.difference)}{scale.unit}"
    bounds = f"({_interval(found.level)} {scale.words(found.bounds, found.margin)})"
    where = f"on {found.cases} cases" if found.these_cases else bounds
    words = f"{shown} {where}, margin {scale.plain(found.margin)} against {found.baseline}"
    if found.expected_cases:
        words += f"; only {found.cases} of {found.expected_cases} cases can be compared"
    if found.worst is not None:
        worst = f"{scale.signed(found.worst.difference)}, {_interval(found.level)}"
        words += (
            f"; if every failed trial counted against it, it would be {worst} "
            f"{scale.words(found.worst.ci95, found.margin)}"
        )
    return f"{words}; {settle_words(found.settle, found.cases)}" if found.settle else words


@in_words.register
def _claimed(found: ClaimReason) -> str:
    shown = _percent if found.percent else Scale(found.metric).signed
    limit = f"{100 * found.limit:g} %" if found.percent else Scale(found.metric).plain(found.limit)
    allowed = f"{found.guard} of at most {limit}" if found.guard else f"margin {limit}"
    if found.alike:
        return f"{shown(found.value) if found.value else 'nothing changed'} on each of {found.cases} cases, {allowed}"
    if found.bounds is None:
        return f"{shown(found.value)} on {found.cases} cases: too few to tell"
    low, high = map(shown, found.bounds)
    words = f"{shown(found.value)} ({_interval(found.level)} {low} to {high}, {found.cases} cases), {allowed}"
    return f"{words}; not if every failed trial counted against it" if found.with_failures else words


def _percent(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f} %".replace("-", "−")


@in_words.register
def _rule(found: RuleReason) -> str:
    wanted = "every answer" if found.k is None else f"{found.k} of the answers"
    words = f"{wanted} must pass on {counted(found.cases, 'case')}"
    words += _listed("not on", found.broken) + _listed("unknown on", found.unknown)
    return words + _listed("flaky before, so not blocking:", found.flaky)


@in_words.register
def _passed(found: PassedAnswers) -> str:
    return f"{found.case} ({found.passed} of {found.answers})" if found.answers else f"{found.case} (no score)"


def _listed(words: str, cases: Sequence[PassedAnswers]) -> str:
    if not cases:
        return ""
    more = f" and {len(cases) - _SHOWN} more" if len(cases) > _SHOWN else ""
    return f"; {words} {', '.join(map(str, cases[:_SHOWN]))}{more}"


@in_words.register
def _several_checks(found: SeveralChecks) -> str:
    return (
        f"{found.checks} statistical checks, one verdict: each must pass by its own {_interval(found.level)}, and any "
        "may block after Holm's adjustment for all of them"
    )


def settle_words(settle: Settle, cases: int) -> str:
    """Say what would be enough."""
    words = f"about {settle.cases:,} cases would be enough to tell"
    if not settle.noise_known:
        return f"{words}; what more answers to these {cases:,} would do is not known: no case has two"
    if settle.repeats is None:
        return f"{words}; more answers to these {cases:,} would not"
    return f"{words}, or {settle.repeats} answers to each of these {cases:,} (now {settle.now})"


@in_words.register
def _changed(found: ChangedSince) -> str:
    arms = ", ".join(found.arms)
    match found.what:
        case "new":
            return f"{arms} is new"
        case "parts":
            parts = ({"target": "model or its options"}.get(part, part) for part in found.parts)
            return f"{arms}: {', '.join(parts)}"
        case "gone":
            return f"without {arms}"
        case shared:
            return shared


def reuse_words(changes: BaselineChanges) -> str:
    """Say what was asked and what was reused."""
    if not changes.reused:
        return f"{counted(changes.answers, 'answer')} asked for, none reused."
    if not changes.asked:
        return f"Nothing was asked: all {counted(changes.answers, 'answer')} are stored and were reused."
    return f"{counted(changes.asked, 'answer')} asked for; {changes.reused} that this change cannot affect were reused."
