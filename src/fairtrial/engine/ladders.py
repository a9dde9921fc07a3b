"""The ladders of a job's models: which share a lane, how many calls each lane may make, and how fast."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from fairtrial.agents.workspace.making import Workspaces
from fairtrial.core.experiment import Arm, TargetSpec
from fairtrial.core.target import Target
from fairtrial.engine.executor import Lane
from fairtrial.engine.job import Job
from fairtrial.engine.ladder import Gate, Ladder, Lookup, Purse, price_of
from fairtrial.engine.limits import Limiter
from fairtrial.engine.pace import Pace
from fairtrial.engine.room import Room

RUN = ""  # the name of the limit that all lanes share
LimiterOf = Callable[[str, int], Limiter]  # from the name of a limit and its calls at a time
_MOST_WAITING = 20_000  # trials of a lane that wait for batches at a time; each takes 10 KB


class Ladders:
    """Makes ladders; all of them share the run's limits, money, machine and workspaces."""

    def __init__(
        self,
        job: Job,
        targets: dict[str, Target],
        budget: Purse,
        room: Room,
        workspaces: Workspaces,
        *,
        limiter_of: LimiterOf | None = None,
        processes: int = 1,
    ) -> None:
        self._job, self._targets, self._processes = job, targets, processes
        self._budget, self._room, self._workspaces = budget, room, workspaces
        self.turns: dict[str, asyncio.Semaphore] = {}  # by target
        self.lanes = self._group()
        # With a single lane, its own limit is the run's limit.
        settings = job.settings
        others = bool(settings.judges or settings.embedders or settings.user)
        shared_gate = len(self.lanes) > 1 or others
        self._limiter_of = limiter_of or (lambda _, most: Limiter(most, settings.retry.max_wait))
        self._gate: Gate = self._limiter_of(RUN, settings.concurrency) if shared_gate else nullcontext()
        self._limiters = {name: self._limiter_of(name, lane.width) for name, lane in self.lanes.items()}
        self._paces: dict[str, Pace] = {}  # by model: providers count each model's calls by themselves

    def _group(self) -> dict[str, Lane]:
        lanes: dict[str, list[Arm]] = {}
        for arm in self._job.arms:
            # A target with its own limit gets its own lane, so that it does not slow down its provider's others.
            suffix = f"#{arm.target.id}" if arm.target.concurrency or arm.target.batch else ""
            lanes.setdefault(f"{self._targets[arm.target.id].lane}{suffix}", []).append(arm)
        return {name: self._lane(arms) for name, arms in lanes.items()}

    def _lane(self, arms: Sequence[Arm]) -> Lane:
        width = min(min(self._width(arm.target), arm.target.concurrency or self._width(arm.target)) for arm in arms)
        waits = any(arm.target.batch for arm in arms) or any(judge.target.batch for judge in self._job.settings.judges)
        at_once = 2 * width + 16
        if waits:  # thousands wait for verdicts; of those that are asked directly, no more begin than in other runs
            turn = asyncio.Semaphore(at_once)
            self.turns.update({arm.target.id: turn for arm in arms if not arm.target.batch})
        return Lane(arms, width, _MOST_WAITING if waits else at_once)

    def _width(self, spec: TargetSpec) -> int:
        here = self._targets[spec.id].most_at_once
        return min(self._job.settings.concurrency, here * self._processes if here else self._job.settings.concurrency)

    def _ladder(self, target: Target, limiter: Limiter, lookup: Lookup | None = None) -> Ladder:
        settings = self._job.settings
        return Ladder(
            target,
            settings,
            gate=self._gate,
            limiter=limiter,
            pace=self._paces.setdefault(f"{target.spec.provider}:{target.spec.model}", Pace()),
            budget=self._budget,
            price=price_of(target, settings.prices),
            lookup=lookup if settings.cache else None,
            room=self._room.place(target.spec.resources or {}),
            workspaces=self._workspaces,
        )

    def in_lane(self, lane: str, target: Target, lookup: Lookup | None) -> Ladder:
        """Return the ladder of a target in one of the lanes."""
        return self._ladder(target, self._limiters[lane], lookup)

    def beside(self, spec: TargetSpec) -> Ladder:
        """Return the ladder of a judge, an embedder or a user, which shares its provider's limits with other models."""
        target = self._targets[spec.id]
        if target.lane not in self._limiters:
            self._limiters[target.lane] = self._limiter_of(target.lane, self._width(spec))
        return self._ladder(target, self._limiters[target.lane])

    def held(self) -> list[tuple[str, str]]:
        """Return which limits hold calls back at the moment, and how; pages ask from other threads."""
        held = [(name, limiter.held()) for name, limiter in list(self._limiters.items())]
        return held + [(name, pace.held()) for name, pace in list(self._paces.items())]
