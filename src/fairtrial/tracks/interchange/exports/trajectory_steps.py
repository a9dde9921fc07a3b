"""The trajectory of a trial as steps: what the user, the system or the agent did, and what came back from its tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import Told
from fairtrial.core.events import (
    CallEvent,
    ChangeEvent,
    Event,
    LimitEvent,
    MessageEvent,
    NoteEvent,
    ReasoningEvent,
    ResultEvent,
    as_data,
)
from fairtrial.core.experiment import Arm
from fairtrial.core.place import Place
from fairtrial.core.trace import ToolCall
from fairtrial.reports.json import iso_time

Document = dict[str, Any]


class Placed(NamedTuple):
    """An event and its place in the trajectory."""

    n: int
    event: Any

    def data(self, *without: str) -> Document:
        """Return it as JSON data with its place, without some of its fields."""
        (data,) = as_data([self.event])
        return {"n": self.n, **{name: value for name, value in data.items() if name not in without}}


class Step:
    """One thing that happened: a message, anything else (`other`), or what an agent did in one reply of its model."""

    def __init__(self) -> None:
        self.reasoning: Placed | None = None
        self.message: Placed | None = None
        self.other: Placed | None = None
        self.calls: list[Placed] = []
        self.results: dict[str, Placed] = {}  # by call
        self.inside: dict[str, list[Step]] = {}  # what the subagent did that a call started

    @property
    def source(self) -> str:
        """Who did it: user, agent or system."""
        if self.other is not None:
            return "system"
        if self.message is not None and self.message.event.role != "assistant":
            return str(self.message.event.role)
        return "agent"

    @property
    def first(self) -> Placed:
        """The event with which it began."""
        return next(one for one in (self.other, self.reasoning, self.message, *self.calls) if one is not None)


def steps_of(events: Sequence[Event]) -> list[Step]:
    """Return a trajectory as steps; subagents are inside of the calls that started them."""
    placed = [Placed(n, event) for n, event in enumerate(events)]
    calls = {one.event.id for one in placed if isinstance(one.event, CallEvent)}
    levels: dict[str, list[Placed]] = {}
    for one in placed:
        level = one.event.within if one.event.within in calls else ""
        levels.setdefault(level, []).append(one)
    made: dict[str, Step] = {}  # the step of each call
    results = [one for one in placed if isinstance(one.event, ResultEvent)]
    done = {level: _steps(inner, made) for level, inner in levels.items()}
    for result in results:
        if result.event.call in made:
            made[result.event.call].results[result.event.call] = result
    for level, steps in done.items():
        if level:
            made[level].inside[level] = steps
    return done.get("", [])


def _steps(placed: Sequence[Placed], made: dict[str, Step]) -> list[Step]:
    steps: list[Step] = []
    current: Step | None = None
    for one in placed:
        event = one.event
        if isinstance(event, ResultEvent) and event.call in made:
            current = None if made[event.call] is current else current
            continue
        if current is not None and _continues(event, current):
            step = current
        else:
            step = Step()
            steps.append(step)
        current = _put(step, one, made)
    return steps


def _continues(event: Event, current: Step) -> bool:
    """Return whether an event is still of a step of the agent: its message after its reasoning, or one more call."""
    if isinstance(event, CallEvent):
        return True
    said = isinstance(event, MessageEvent) and event.role == "assistant"
    return said and current.message is None and not current.calls


def _put(step: Step, one: Placed, made: dict[str, Step]) -> Step | None:
    """Put an event into a step; return the step if more may follow in it."""
    event = one.event
    if isinstance(event, ReasoningEvent):
        step.reasoning = one
        return step
    if isinstance(event, MessageEvent):
        step.message = one
        return step if event.role == "assistant" else None
    if isinstance(event, CallEvent):
        step.calls.append(one)
        made[event.id] = step
        return step
    step.other = one
    return None


def shown(event: Event) -> str:
    """Say in a few words what happened, for programs that know only messages."""
    if isinstance(event, ChangeEvent):
        return f"{event.how}: {event.path}"
    if isinstance(event, LimitEvent):
        return f"limit of {event.kind} reached" + ("" if event.limit is None else f": {event.limit:g}")
    if isinstance(event, NoteEvent):
        return event.text
    return str(getattr(event, "text", ""))


# -- the trial around it -------------------------------------------------------------------------


class Trajectory(NamedTuple):
    """A trial with everything that happened in it."""

    told: Told
    arm: Arm
    events: tuple[Event, ...]
    system: str  # what its condition told the agent
    version: str  # of the agent

    @property
    def agent(self) -> str:
        """The agent, as it is called elsewhere too."""
        target = self.arm.target
        return target.provider or target.kind

    @property
    def model(self) -> str:
        """The model that answered."""
        return self.told.trial.model or self.arm.target.model_behind

    def facts(self, run: Run) -> Document:
        """Return what the formats have no field for: the case, the arm, the score, and how it ended."""
        trial = self.told.trial
        kept: Document = {
            "run": run.id,
            "trial": trial.trial_id,
            "case": trial.case_id,
            "arm": trial.arm,
            "repeat": trial.repeat,
            "rewards": {} if trial.score is None else {str(trial.scorer or "score"): trial.score},
            "notes": {str(trial.scorer or "score"): trial.notes} if trial.notes else {},
            "finish_reason": trial.finish_reason,
            "latency_ms": trial.latency_ms,
            "started_at": iso_time(trial.started_at),
            "cost_usd": trial.cost_usd,
            "tags": list(trial.tags),
        }
        if trial.failure_kind is not None:
            kept["failure"] = {"kind": trial.failure_kind, "message": trial.failure_message}
        return {name: value for name, value in kept.items() if value not in (None, "", {}, [])}

    def moments(self) -> dict[int, float]:
        """Return when each turn began, in seconds since 1970: a turn begins when the one before has ended."""
        began = {1: self.told.trial.started_at or 0.0}
        for turn in range(1, max((event.turn for event in self.events), default=1)):
            took = max((event.at or 0.0 for event in self.events if event.turn == turn), default=0.0)
            began[turn + 1] = began[turn] + took
        return began


def trajectories(run: Run) -> Iterator[Trajectory]:
    """Yield every trial of a run with its trajectory."""
    arms = {arm.name: arm for arm in run.plan_arms}
    versions = _versions(run)
    for told in run.told_trials():
        arm = arms[told.trial.arm]
        place = Place(told.case.position, arm.position, told.trial.repeat - 1)
        events = run.trajectory(place, told.case, told.trial)
        system = told.chat.system if told.chat is not None else ""
        yield Trajectory(told, arm, events, system, versions.get(arm.target.provider, versions["fairtrial"]))


def _versions(run: Run) -> dict[str, str]:
    """Return the versions of agents by name, as they were recorded."""
    packages = {str(name): str(value) for name, value in (run.context.get("packages") or {}).items()}
    found = {name.lower().replace(" ", "-"): value for name, value in packages.items()}
    origin = run.record.origin
    if origin is not None:
        found |= {arm.target.provider: origin["version"] or "unknown" for arm in run.plan_arms}
    return {"fairtrial": "unknown", **found}


def tool_name(call: CallEvent | ToolCall) -> str:
    """Return the name of a tool with its server, as agents write both."""
    return f"mcp__{call.server}__{call.tool}" if call.server else call.tool


def file_stem(told: Told) -> str:
    """Return a name for the file of a trial."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", told.trial.case_id).strip("-")[:40]
    return f"{words}_{told.trial.trial_id}" if words else told.trial.trial_id
