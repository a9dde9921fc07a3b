"""Failures of a run, grouped by what went wrong: the reason, the tool of the last failed call, how the trial ended.

Without a model: groups are equal facts, so that they are the same whenever and wherever they are made.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal, NamedTuple

import msgspec

from fairtrial.analyse.stored_run import StoredRun, TrialRecord
from fairtrial.core.events import CallEvent, ChangeEvent, Event, LimitEvent, NoteEvent, ResultEvent
from fairtrial.core.place import Place
from fairtrial.core.trace import events_of
from fairtrial.store.failing import failing_places

Kind = Literal["failure", "unscored", "limit", "wrong"]
MOST_TRIALS = 200  # of one group that are named
_MOST_NOTE = 100  # characters of a note
_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|‘[^’]*’|«[^»]*»|(?<!\w)'[^']*'(?!\w)")
_NUMBER = re.compile(r"(?<!\w)[-+−]?\d+(?:[.,:_]\d+)*(?:e[-+]?\d+)?", re.IGNORECASE)


class FailedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A trial that went wrong."""

    place: tuple[int, int, int]
    trial_id: str
    case_id: str
    arm: str
    repeat: int


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Trials that went wrong in the same way."""

    kind: Kind
    reason: str  # the kind of the failure or of the limit, or the scorer's note without quotations and numbers
    tool: str  # of the last call that failed; empty if none did
    ending: str  # the kind of the last event; empty if nothing was recorded
    count: int
    arms: dict[str, int]
    trials: list[FailedTrial]  # the first of them, in the order of cases
    example: str  # what was said of the first of them, in full


class Causes(msgspec.Struct, frozen=True, kw_only=True):
    """All groups, the largest first, and how many trials of the run went wrong."""

    run_id: str
    failures: int
    groups: list[Cause]


class _Key(NamedTuple):
    kind: Kind
    reason: str
    tool: str
    ending: str


def causes(run: StoredRun) -> Causes:
    """Group the trials of a run that failed, have no score, or a score below the middle."""
    groups: dict[_Key, list[FailedTrial]] = {}
    arms: dict[_Key, Counter[str]] = {}
    examples: dict[_Key, str] = {}
    for place, trial in run.found_at(failing_places(run.store, run.id, run.record.scoring)):
        key = _key(trial)
        arms.setdefault(key, Counter())[trial.arm] += 1
        examples.setdefault(key, _said(trial))
        own = groups.setdefault(key, [])
        if len(own) < MOST_TRIALS:
            own.append(_failed(place, trial))
    found = [
        Cause(
            **key._asdict(),
            count=arms[key].total(),
            arms={arm.name: arms[key][arm.name] for arm in run.plan_arms if arm.name in arms[key]},
            trials=trials,
            example=examples[key],
        )
        for key, trials in groups.items()
    ]
    found.sort(key=lambda cause: (-cause.count, cause.kind, cause.reason, cause.tool, cause.ending))
    return Causes(run_id=run.id, failures=sum(cause.count for cause in found), groups=found)


def _failed(place: Place, trial: TrialRecord) -> FailedTrial:
    return FailedTrial(
        place=(place.case, place.arm, place.repeat),
        trial_id=trial.trial_id,
        case_id=trial.case_id,
        arm=trial.arm,
        repeat=trial.repeat,
    )


def _key(trial: TrialRecord) -> _Key:
    events = events_of(trial.trace) or ()
    kind, reason = _reason(trial, events)
    return _Key(kind, reason, _last_failed_tool(events), _ending(events))


def _reason(trial: TrialRecord, events: tuple[Event, ...]) -> tuple[Kind, str]:
    limit = next((event for event in reversed(events) if isinstance(event, LimitEvent)), None)
    if trial.failure_kind is not None:
        return "failure", trial.failure_kind
    if limit is not None:
        return "limit", limit.kind
    if trial.unscored_kind is not None:
        return "unscored", trial.unscored_kind
    return "wrong", without_particulars(trial.notes or trial.scorer or "")


def _said(trial: TrialRecord) -> str:
    return trial.failure_message or trial.unscored_message or trial.notes or ""


def _last_failed_tool(events: tuple[Event, ...]) -> str:
    """Return which tool the last call that went wrong was of; empty if none did."""
    returned = {event.call: event for event in events if isinstance(event, ResultEvent)}
    for event in reversed(events):
        if isinstance(event, CallEvent):
            result = returned.get(event.id)
            if result is None or result.error or result.rejected:
                return f"{event.server or 'built-in'}.{event.tool}"
    return ""


def _ending(events: tuple[Event, ...]) -> str:
    """Return the kind of the last thing that happened; changed files are looked for after all else."""
    last = next((event for event in reversed(events) if not isinstance(event, ChangeEvent | NoteEvent)), None)
    return "" if last is None else str(last.__struct_config__.tag)


def without_particulars(note: str) -> str:
    """Return a note without what it quotes and without its numbers, so that notes on different answers are equal."""
    line = " ".join(note[: 20 * _MOST_NOTE].split())
    plain = _NUMBER.sub("#", _QUOTED.sub("…", line))
    first = re.split(r"(?<=[.!?;])\s", plain, maxsplit=1)[0]
    return first if len(first) <= _MOST_NOTE else f"{first[:_MOST_NOTE].rpartition(' ')[0]} …"
