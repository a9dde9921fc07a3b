"""Carrying out trials in this process: one event loop, one lane per provider.

A lane has more workers than calls at once: while one worker's answer is being stored and scored, another one asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

import msgspec

from fairtrial.core.answer import Answer, Failure, Outcome, Request
from fairtrial.core.experiment import Arm, JudgeSpec
from fairtrial.core.judge import Judge, Panel, judge_of
from fairtrial.core.listening import Listener
from fairtrial.core.score import Unscored
from fairtrial.core.target import Target
from fairtrial.core.trace import tool_use
from fairtrial.core.trial import Trial
from fairtrial.core.workshop import Workshop
from fairtrial.engine.budget import Budget
from fairtrial.engine.executor import Lane, Reports
from fairtrial.engine.job import Job
from fairtrial.engine.ladder import Gate, Ladder, Lookup, price_of
from fairtrial.engine.limits import Limiter
from fairtrial.engine.scoring import Scoring
from fairtrial.judging.trying import try_judge


class LocalExecutor:
    """Asks and scores in this process."""

    def __init__(
        self, job: Job, targets: dict[str, Target], scoring: Scoring, budget: Budget, lookup: Lookup | None
    ) -> None:
        self._job, self._targets, self._scoring = job, targets, scoring
        self._budget, self._lookup = budget, lookup
        self._lanes = self._group()
        # A single lane's own limit is the run's limit.
        several = len(self._lanes) > 1 or bool(job.settings.judges)
        self._gate: Gate = asyncio.Semaphore(job.settings.concurrency) if several else nullcontext()
        longest = job.settings.retry.max_wait
        self._limiters = {name: Limiter(lane.width, longest) for name, lane in self._lanes.items()}
        self._ladders: dict[str, Ladder] = {}
        self._judge_ladders: dict[str, Ladder] = {}
        judges = tuple(judge_of(judge, partial(self._ask_judge, judge)) for judge in job.settings.judges)
        self._panel = Panel(judges=judges, how=job.settings.panel)
        self._workshop = Workshop()

    def _group(self) -> dict[str, Lane]:
        lanes: dict[str, list[Arm]] = {}
        for arm in self._job.arms:
            # A target with a limit of its own has a lane of its own: it must not slow down its provider's others.
            own = f"#{arm.target.id}" if arm.target.concurrency else ""
            lanes.setdefault(f"{self._targets[arm.target.id].lane}{own}", []).append(arm)
        return {name: Lane(arms, self._width(arms)) for name, arms in lanes.items()}

    def _width(self, arms: Sequence[Arm]) -> int:
        limits = [self._job.settings.concurrency]
        for arm in arms:
            own = (arm.target.concurrency, self._targets[arm.target.id].most_at_once)
            limits += [limit for limit in own if limit is not None]
        return min(limits)

    async def __aenter__(self) -> LocalExecutor:
        await self._workshop.__aenter__()
        for name, lane in self._lanes.items():
            for arm in lane.arms:
                target = self._targets[arm.target.id]
                self._ladders[target.spec.id] = self._ladder(target, self._limiters[name], self._lookup)
        # Judges climb the same ladder, and share a provider's limits with its other models.
        settings = self._job.settings
        for judge in settings.judges:
            target = self._targets[judge.target.id]
            most = min(settings.concurrency, target.most_at_once or settings.concurrency)
            limiter = self._limiters.setdefault(target.lane, Limiter(most, settings.retry.max_wait))
            self._judge_ladders[target.spec.id] = self._ladder(target, limiter, None)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._workshop.__aexit__(*exception)

    def _ladder(self, target: Target, limiter: Limiter, lookup: Lookup | None) -> Ladder:
        settings = self._job.settings
        return Ladder(
            target,
            settings,
            gate=self._gate,
            limiter=limiter,
            budget=self._budget,
            price=price_of(target, settings.prices),
            lookup=lookup if settings.cache else None,
        )

    def lanes(self) -> list[Lane]:
        """One per provider, so that a provider that makes us wait does not hold up the others."""
        return list(self._lanes.values())

    def judges(self) -> list[Judge]:
        """The judges whose calls cost money."""
        pairs = zip(self._panel.judges, self._job.settings.judges, strict=True)
        return [judge for judge, spec in pairs if self._targets[spec.target.id].priced]

    async def try_judge(self, judge: Judge) -> Failure | None:
        """Ask a judge something easy, once."""
        return await try_judge(judge)

    async def _ask_judge(self, judge: JudgeSpec, request: Request) -> Outcome:
        return await self._judge_ladders[judge.target.id].ask(request)

    async def carry_out(self, trial: Trial, reports: Reports, listener: Listener) -> None:
        """Ask, report, score, report."""
        answer = trial.stored
        if answer is None:
            request = trial.request(stream=self._job.settings.stream)
            try:
                outcome = await self._ladders[trial.arm.target.id].ask(
                    msgspec.structs.replace(request, listener=listener)
                )
            finally:
                listener.end()
            answer = await reports.answered(trial, outcome)
            if answer is None:
                return
        result = _missing_tool_use(trial, answer) or await self._scoring.score(
            trial, answer, self._panel, trial.judgements, self._workshop
        )
        await reports.scored(trial, result)


def _missing_tool_use(trial: Trial, answer: Answer) -> Unscored | None:
    """Why this answer gets no score though it is one: a condition may insist on the use of its tools.

    It is never asked for again until the tool was used: that would select answers.
    """
    condition = trial.arm.condition
    if condition.on_missing_tool_use == "mark":
        return None
    missing = condition.missing(tool_use(answer.trace, [server.name for server in condition.mcp]))
    return Unscored(kind="tool_use", message=missing) if missing else None
