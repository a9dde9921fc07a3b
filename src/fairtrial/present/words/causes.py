"""Trials that went wrong in the same way, in words: for pages, the report and the terminal."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairtrial.analyse.causes import Cause, Causes, FailedTrial
from fairtrial.present.words.steps import LIMITS
from fairtrial.text.printable import clipped, counted, level, one_line

_MOST_SHOWN = 25  # groups
_MOST_LINKS = 20  # trials of one group
_EXAMPLE = 300
_ENDINGS = {
    "message": "a message",
    "reasoning": "reasoning",
    "call": "a call that did not return",
    "result": "the result of a call",
    "limit": "a limit",
    "error": "an error",
}


class TrialLink(msgspec.Struct, frozen=True):
    """A trial by its name, and where it leads."""

    name: str
    address: str


class CauseWords(msgspec.Struct, frozen=True, kw_only=True):
    """One group in words."""

    count: int
    title: str
    facts: list[str]
    arms: str
    example: str
    trials: list[TrialLink]
    more: int  # trials that are not named


class CausesWords(msgspec.Struct, frozen=True, kw_only=True):
    """All groups in words."""

    headline: str
    groups: list[CauseWords]
    more: str  # groups that are not shown


def causes_words(causes: Causes, address: Callable[[FailedTrial], str] = lambda trial: "") -> CausesWords:
    """Return the groups in words; `address` says where a trial leads."""
    left = causes.groups[_MOST_SHOWN:]
    rest = f"and {counted(len(left), 'more cause')}, {counted(sum(cause.count for cause in left), 'trial')}"
    trials = counted(causes.failures, "trial")
    return CausesWords(
        headline=f"{trials} failed, unscored or below 50, by {counted(len(causes.groups), 'cause')}"
        if causes.groups
        else "no trial failed, is unscored or below 50",
        groups=[_words(cause, address) for cause in causes.groups[:_MOST_SHOWN]],
        more=rest if left else "",
    )


def _words(cause: Cause, address: Callable[[FailedTrial], str]) -> CauseWords:
    several = len({trial.repeat for trial in cause.trials}) > 1
    return CauseWords(
        count=cause.count,
        title=level(one_line(title(cause))),
        facts=[level(one_line(fact)) for fact in _facts(cause)],
        arms=level(one_line(", ".join(f"{arm} {count}" for arm, count in cause.arms.items()))),
        example="" if cause.example == cause.reason else level(clipped(one_line(cause.example[:2000]), _EXAMPLE)),
        trials=[
            TrialLink(level(one_line(_name(trial, several=several))), address(trial))
            for trial in cause.trials[:_MOST_LINKS]
        ],
        more=cause.count - len(cause.trials[:_MOST_LINKS]),
    )


def title(cause: Cause) -> str:
    """Name a cause: `call failed: timeout`."""
    if cause.kind == "failure":
        return f"call failed: {cause.reason}"
    if cause.kind == "unscored":
        return f"no score: {cause.reason}"
    if cause.kind == "limit":
        return f"limit of {LIMITS.get(cause.reason, cause.reason)} reached"
    return f"below 50: {cause.reason or 'no note'}"


def _facts(cause: Cause) -> list[str]:
    ending = _ENDINGS.get(cause.ending, cause.ending)
    return [
        *([f"last failed call: {cause.tool}"] if cause.tool else []),
        *([f"ended with {ending}"] if ending else []),
    ]


def _name(trial: FailedTrial, *, several: bool) -> str:
    return f"{trial.case_id} · {trial.arm}" + (f" · {trial.repeat}" if several else "")
