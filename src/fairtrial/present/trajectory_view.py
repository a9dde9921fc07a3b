"""A trajectory as every surface shows it: a slice of its steps in words, what is not known, where its failures are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fairtrial.analyse.steps import ONLY, Only, Step, Steps
from fairtrial.analyse.stored_run import StoredRun, TrialRecord
from fairtrial.core.events import Event
from fairtrial.core.experiment import Arm, Case
from fairtrial.core.place import Place
from fairtrial.core.trace import events_of
from fairtrial.present.words.steps import StepWords, choice_words, step_words, steps_headline, unknown_words

_WIDTH = 0.5  # percent that a bar has at least


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a trajectory is shown at once."""

    most: int = 100  # steps
    characters: int = 120_000  # of the texts of all of them
    longest: int = 2000  # characters of a text


class Bar(msgspec.Struct, frozen=True):
    """When a call was under way, in percent of its turn."""

    start: float
    width: float


class TrajectoryView(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the steps of a trial, and what a reader needs to find others."""

    headline: str
    steps: tuple[StepWords, ...]
    bars: dict[int, Bar]
    unknown: dict[int, str]  # by turn: which calls were not recorded
    turns: int
    only: Only
    choices: dict[Only, str]
    first_failure: int | None
    before: int | None  # the number of a step with which an earlier slice begins
    before_count: int
    after: int | None  # and a later one
    after_count: int


def trial_steps(run: StoredRun, place: Place, case: Case, trial: TrialRecord, **which: Any) -> TrajectoryView | None:
    """Return the steps of a trial; None where there is nothing but question and answer, and nothing to know."""
    arm = run.plan_arms[place.arm]
    if not has_steps(arm, trial):
        return None
    events = run.trajectory(place, case, trial)
    return trajectory_view(events, trial.trace, unreported=_is_unreported(arm, trial), **which)


def has_steps(arm: Arm, trial: TrialRecord) -> bool:
    """Return whether there is more to a trial than question and answer, or it is not known whether there is."""
    trace = trial.trace or {}
    told = any(trace.get(name) for name in ("events", "tool_calls", "messages", "not_told"))
    return _is_unreported(arm, trial) or (told and (events_of(trace) is not None or bool(trace.get("not_told"))))


def _is_unreported(arm: Arm, trial: TrialRecord) -> bool:
    """Return whether a target that was given tools does not say which of them it called."""
    return bool(arm.condition.mcp) and trial.tool_calls is None and trial.trace is None and trial.answer is not None


def trajectory_view(
    events: Sequence[Event],
    trace: Mapping[str, Any] | None = None,
    *,
    unreported: bool = False,
    only: str = "",
    first: int = 1,
    at_end: bool = False,
    size: Slice | None = None,
) -> TrajectoryView:
    """Return the steps from a number on, or the last ones; with `unreported`, nothing is known of any turn's calls."""
    size = size or Slice()
    steps = Steps(events)
    choice: Only = next((known for known in ONLY if known == only), "")
    chosen = steps.chosen(choice)
    start = min(bisect_left(chosen, first, key=lambda step: step.number), max(0, len(chosen) - 1))
    if at_end:
        start = max(0, len(chosen) - size.most)
    shown = _worded(chosen[start : start + size.most], size)
    end = start + len(shown)
    return TrajectoryView(
        headline=steps_headline(steps),
        steps=shown,
        bars={step.number: bar for step in chosen[start:end] if (bar := _bar(step, steps.spans))},
        unknown=_unknown(trace, steps.turns, unreported=unreported),
        turns=steps.turns,
        only=choice,
        choices={one: choice_words(one, steps) for one in ONLY},
        first_failure=steps.first_failure,
        before=chosen[max(0, start - size.most)].number if start else None,
        before_count=start,
        after=chosen[end].number if end < len(chosen) else None,
        after_count=len(chosen) - end,
    )


def _worded(chosen: Sequence[Step], size: Slice) -> tuple[StepWords, ...]:
    """Return steps in words, as many as there is room for; at least one."""
    found: list[StepWords] = []
    room = size.characters
    for step in chosen:
        words = step_words(step, size.longest)
        room -= sum(len(text.text) for text in words.texts)
        if room < 0 and found:
            break
        found.append(words)
    return tuple(found)


def _bar(step: Step, spans: Mapping[int, float]) -> Bar | None:
    span, at = spans.get(step.event.turn), step.event.at
    if not span or at is None or step.result is None or step.result.ms is None:
        return None
    start = min(100 - _WIDTH, 100 * max(0.0, at) / span)
    return Bar(round(start, 2), round(max(_WIDTH, min(100 - start, step.result.ms / 10 / span)), 2))


def _unknown(trace: Mapping[str, Any] | None, turns: int, *, unreported: bool) -> dict[int, str]:
    told = (trace or {}).get("not_told")
    numbers = range(1, turns + 1) if unreported else told if isinstance(told, list | tuple) else ()
    return {turn: unknown_words(turn, turns) for turn in numbers if isinstance(turn, int)}
