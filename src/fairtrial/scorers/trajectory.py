"""`trajectory`: was the way to the answer right: which calls in which order, what never, what on the way?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec

from fairtrial.core.call_outcomes import CallOutcome, is_call, shown_call, steps_in
from fairtrial.core.events import ChangeEvent, Event, MessageEvent
from fairtrial.core.experiment import Case, ExpectedCall
from fairtrial.core.score import ANY, Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.conditions import IncomparableError, condition_problem, found_in
from fairtrial.text.printable import clipped, counted

_TOP = 100.0
_MAX_SHOWN = 300
_MILESTONES, _CALLS, _ERRORS = "milestones", "calls", "tool errors"


class CallPattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call: `tool` or `server.tool`, where `*` stands for anything, and conditions on its arguments."""

    shorthand: ClassVar[str] = "tool"
    tool: str
    arguments: dict[str, Any] = {}


class Milestone(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something to be reached: a `call` that succeeded, a `text` in a message of the agent, or a file `changed`."""

    name: str
    call: str | CallPattern | None = None
    text: str | None = None
    changed: str | None = None
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0


Calls = Annotated[list[str | CallPattern], msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class _Seen(NamedTuple):
    """A trajectory, as far as it matters: calls that were carried out, those that were not, and all events."""

    steps: list[CallOutcome]
    rejected: list[CallOutcome]
    events: Sequence[Event]
    changed: dict[str, int]  # where each file was first seen to be changed


class Trajectory(Scorer, frozen=True, kw_only=True):
    """Scores 0 if anything on the way breaks a rule; otherwise the share of `milestones`, or 1 without any.

    Rules: `required` calls, those of `order` (`how`: in_order, with others in between; exact, these and no others;
    any), none that is `forbidden`, `min_calls`, `max_calls`, at most `max_errors` of tools, and with `recovers` a
    successful call of a tool after each of its errors. A call is a name (`tool` or `server.tool`, `*` for anything),
    or `tool` with `arguments`: values, or conditions such as `">100"`, `"!=EUR"`, `/pattern/` and `inv-*`. A forbidden
    call that was rejected is an attempt and counts, unless `rejected` is `ignore`; anywhere else, a rejected call was
    not made. Calls of subagents count, unless `subagents` is false. What a target does not tell leaves it unscored.
    """

    guide: ClassVar = Guide(
        scale="0–100: 0 for a broken rule, else the share of milestones",
        reproducibility="deterministic",
        best_for="agents: the whole way over all turns, with what must never happen",
    )
    reads_text: ClassVar[bool] = False
    sees_all: ClassVar[bool] = True
    scores_refusals: ClassVar[bool] = True  # what was done before somebody refused was done
    order: Calls | None = None
    how: Literal["in_order", "exact", "any"] = "in_order"
    required: Calls | None = None
    forbidden: Calls | None = None
    min_calls: Count | None = None
    max_calls: Count | None = None
    max_errors: Count | None = None
    recovers: bool = False
    milestones: list[Milestone] = []
    in_order: Annotated[
        bool, msgspec.Meta(description="Whether a milestone counts only once those before it were reached.")
    ] = False
    rejected: Literal["count", "ignore"] = "count"
    subagents: bool = True

    def scales(self) -> dict[str, Scale]:
        own: dict[str, Scale] = {_MILESTONES: (0.0, _TOP)} if self.milestones else {}
        return {**own, _CALLS: ANY, _ERRORS: (None, 0.0)}

    # -- before the run --------------------------------------------------------------------------

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if not (self._asks_for_calls() or self.milestones):
            yield "a trajectory needs a rule or a milestone: `order`, `required`, `forbidden`, `max_calls`, …"
        if self.min_calls is not None and self.max_calls is not None and self.min_calls > self.max_calls:
            yield f"`min_calls` ({self.min_calls}) is above `max_calls` ({self.max_calls}), so no answer can be right"
        named = [*(self.order or ()), *(self.required or ()), *(self.forbidden or ())]
        for call in _expected([*named, *(one.call for one in self.milestones if one.call is not None)]):
            if problem := condition_problem(call.arguments or {}):
                yield f"{call.name}: {problem}"
        names = [milestone.name for milestone in self.milestones]
        if len(set(names)) < len(names):
            yield "milestones need different names"
        for milestone in self.milestones:
            given = (milestone.call, milestone.text, milestone.changed)
            if sum(value is not None for value in given) != 1:
                yield f"milestone `{milestone.name}` needs one of `call`, `text` and `changed`"
            elif milestone.text is not None and (problem := condition_problem(milestone.text)):
                yield f"milestone `{milestone.name}`: {problem}"

    def _asks_for_calls(self) -> bool:
        """Return whether any rule or milestone is about calls."""
        limits = (self.min_calls, self.max_calls, self.max_errors)
        rules = self.order or self.required or self.forbidden or self.recovers
        return bool(rules) or any(limit is not None for limit in limits) or any(m.call for m in self.milestones)

    # -- scoring ---------------------------------------------------------------------------------

    async def score(self, context: ScoreContext) -> Score | Unscored:
        if unknown := self._unknown(context):
            return Unscored(kind="trace", message=unknown)
        seen = self._seen(context)
        try:
            broken = list(self._broken(seen))
            reached = list(self._reached(seen)) if self.milestones else []
        except IncomparableError as error:
            return Unscored(kind="trace", message=str(error))
        total = sum(milestone.weight for milestone in self.milestones)
        share = sum(milestone.weight for milestone, at in reached if at is not None) / total if total else 1.0
        value = 0.0 if broken else share
        details: dict[str, Any] = {"broken": broken} if broken else {}
        if self.milestones:
            details[_MILESTONES] = [
                {"name": one.name, "weight": one.weight, "reached": at is not None} for one, at in reached
            ]
        metrics = {_CALLS: float(len(seen.steps)), _ERRORS: float(sum(step.failed for step in seen.steps))}
        return Score(
            value=value,
            raw=value,
            confidence=1.0,
            notes=_notes(broken, reached, seen),
            details=details or None,
            metrics=metrics | ({_MILESTONES: _TOP * share} if self.milestones else {}),
        )

    def _unknown(self, context: ScoreContext) -> str:
        """Return what the target does not tell and would have to; empty if it tells everything that matters."""
        if self._asks_for_calls() and context.tool_calls is None:
            trace = (context.answer.trace if context.answer else None) or {}
            turns = ", ".join(map(str, trace.get("not_told") or ()))
            where = f" in turn {turns}" if turns and len(context.turns) > 1 else ""
            return f"the target does not report which tools were used{where}"
        if any(milestone.changed for milestone in self.milestones) and context.workspace is None:
            return "there is no workspace: which files were changed is not known"
        return ""

    def _seen(self, context: ScoreContext) -> _Seen:
        events = context.events
        steps = steps_in(events, subagents=self.subagents)
        changed: dict[str, int] = {}
        for place, event in enumerate(events):
            if isinstance(event, ChangeEvent):
                changed.setdefault(event.path, place)
        shown = ((context.answer.trace if context.answer else None) or {}).get("workspace")
        for how in ("added", "modified", "removed"):  # an agent that tells no events still changes files
            for path in (shown.get(how) or ()) if isinstance(shown, dict) else ():
                changed.setdefault(str(path), len(events))
        return _Seen([s for s in steps if not s.rejected], [s for s in steps if s.rejected], events, changed)

    # -- rules -----------------------------------------------------------------------------------

    def _broken(self, seen: _Seen) -> Iterator[str]:
        """Yield every rule that is broken, in words."""
        for call in _expected(self.forbidden):
            yield from self._forbidden(call, seen)
        for call in _expected(self.required):
            if not any(is_call(step, call) for step in seen.steps):
                yield f"no call of {shown_call(call)}"
        yield from self._out_of_order(list(_expected(self.order)), seen.steps)
        count, errors = len(seen.steps), sum(step.failed for step in seen.steps)
        if self.min_calls is not None and count < self.min_calls:
            yield f"{counted(count, 'call')}, below the minimum of {self.min_calls}"
        if self.max_calls is not None and count > self.max_calls:
            yield f"{counted(count, 'call')}, above the maximum of {self.max_calls}"
        if self.max_errors is not None and errors > self.max_errors:
            yield f"{counted(errors, 'error')} of tools, above the maximum of {self.max_errors}"
        if self.recovers:
            yield from _unrecovered(seen.steps)

    def _forbidden(self, call: ExpectedCall, seen: _Seen) -> Iterator[str]:
        if any(is_call(step, call) for step in seen.steps):
            yield f"{shown_call(call)} is forbidden"
        elif self.rejected == "count" and any(is_call(step, call) for step in seen.rejected):
            yield f"{shown_call(call)} is forbidden, and was tried, but rejected"

    def _out_of_order(self, wanted: list[ExpectedCall], steps: Sequence[CallOutcome]) -> Iterator[str]:
        missing = [shown_call(call) for call in wanted if not any(is_call(step, call) for step in steps)]
        if missing:
            yield f"no call of {', '.join(dict.fromkeys(missing))}"
        elif not wanted:
            return
        elif self.how == "any":
            if not _each_its_own(wanted, steps):
                yield "a call of `order` was made fewer times than it is there"
        elif self.how == "exact":
            if len(steps) != len(wanted) or not all(map(is_call, steps, wanted)):
                yield "not exactly the calls of `order`"
        else:
            left = iter(steps)
            if not all(any(is_call(step, call) for step in left) for call in wanted):
                yield "the calls of `order` are not in their order"

    # -- milestones ------------------------------------------------------------------------------

    def _reached(self, seen: _Seen) -> Iterator[tuple[Milestone, int | None]]:
        """Yield every milestone with the place at which it was reached; None if it was not."""
        after: int | None = -1
        for milestone in self.milestones:
            places = _places(milestone, seen, self.subagents)
            if not self.in_order:
                yield milestone, min(places, default=None)
                continue
            after = None if after is None else min((place for place in places if place > after), default=None)
            yield milestone, after


def _expected(calls: Sequence[str | CallPattern] | None) -> Iterator[ExpectedCall]:
    for call in calls or ():
        name, arguments = (call, None) if isinstance(call, str) else (call.tool, call.arguments or None)
        yield ExpectedCall(name=name, arguments=arguments)


def _places(milestone: Milestone, seen: _Seen, subagents: bool) -> list[int]:
    """Return every place at which a milestone was reached."""
    if milestone.call is not None:
        (call,) = _expected([milestone.call])
        fitting = (step for step in seen.steps if step.succeeded and is_call(step, call))
        return [step.at for step in fitting]
    if milestone.text is not None:
        wanted = milestone.text
        return [place for place, event in enumerate(seen.events) if _says(event, wanted, subagents)]
    pattern = milestone.changed or ""
    return [place for path, place in seen.changed.items() if fnmatchcase(path, pattern)]


def _says(event: Event, wanted: str, subagents: bool) -> bool:
    if not isinstance(event, MessageEvent) or event.role != "assistant" or (event.within and not subagents):
        return False
    return found_in(event.text, wanted)


def _each_its_own(wanted: Sequence[ExpectedCall], steps: Sequence[CallOutcome]) -> bool:
    """Return whether every wanted call can have a call of its own, whatever the order."""
    taken: dict[int, int] = {}  # the wanted call that has each step

    def place(number: int, tried: set[int]) -> bool:
        for at, step in enumerate(steps):
            if at in tried or not is_call(step, wanted[number]):
                continue
            tried.add(at)
            if at not in taken or place(taken[at], tried):
                taken[at] = number
                return True
        return False

    return all(place(number, set()) for number in range(len(wanted)))


def _unrecovered(steps: Sequence[CallOutcome]) -> Iterator[str]:
    """Yield the tools that failed and were not called successfully afterwards."""
    names = []
    for step in steps:
        later = (other for other in steps if other.call.name == step.call.name and other.at > step.at)
        if step.failed and not any(other.succeeded for other in later):
            names.append(step.call.name)
    for name in dict.fromkeys(names):
        yield f"no successful call of {name} after its error"


def _notes(broken: Sequence[str], reached: Sequence[tuple[Milestone, int | None]], seen: _Seen) -> str:
    calls = clipped(", ".join(step.call.name for step in seen.steps), _MAX_SHOWN) or "no calls"
    missed = [milestone.name for milestone, at in reached if at is None]
    parts = list(broken)
    if reached:
        parts.append(f"{len(reached) - len(missed)} of {counted(len(reached), 'milestone')}")
    if missed:
        parts.append(f"not reached: {', '.join(missed)}")
    return f"{'; '.join(parts)} (calls: {calls})" if parts else calls
