"""Carry out trials in this process, with one event loop and one lane per provider.

A lane has more workers than concurrent calls: while one worker's answer is stored and scored, another worker asks.
"""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import partial

import msgspec

from fairtrial.agents.doubles.notes import unknown_calls
from fairtrial.agents.workspace.making import Workspaces, kept_name
from fairtrial.core.answer import Answer, Failure, Outcome, Request
from fairtrial.core.experiment import Resources
from fairtrial.core.file import Attachment, File
from fairtrial.core.judge import Judge, Panel
from fairtrial.core.listening import Listener
from fairtrial.core.score import UNRECORDED, MakeWorkspace, Score, Unscored
from fairtrial.core.settings import JudgeSpec
from fairtrial.core.target import Target
from fairtrial.core.trace import tool_use
from fairtrial.core.trial import Trial
from fairtrial.core.workshop import Workshop
from fairtrial.core.workspace import WorkspaceSpec
from fairtrial.engine.activity import Busy
from fairtrial.engine.asking import Asking
from fairtrial.engine.batch_book import BatchBook
from fairtrial.engine.batches import Batches
from fairtrial.engine.bench import embedding_of, embedding_request
from fairtrial.engine.cancelling import raise_if_cancelled
from fairtrial.engine.ends import Ends
from fairtrial.engine.executor import Lane, Reports
from fairtrial.engine.job import Job
from fairtrial.engine.ladder import Ladder, Lookup, Purse
from fairtrial.engine.ladders import Ladders, LimiterOf
from fairtrial.engine.room import Room, this_machine
from fairtrial.engine.scoring import Scoring, Tools
from fairtrial.engine.user import SimulatedUser
from fairtrial.providers.judge_models import judge_of

_MAX_EMBEDDINGS = 1000  # that are kept; each takes 8 bytes for each of its numbers


class LocalExecutor:
    """Asks targets and scores answers in this process."""

    def __init__(
        self,
        job: Job,
        targets: dict[str, Target],
        scoring: Scoring,
        budget: Purse,
        lookup: Lookup | None,
        load_file: Callable[[Attachment], Awaitable[File]],
        *,
        book: BatchBook | None = None,
        limiter_of: LimiterOf | None = None,
        processes: int = 1,
        share: Resources | None = None,
    ) -> None:
        """`book` is the record of batches, which only the process with the store has.

        In a worker, `limiter_of` makes limiters that keep to its part of the limits, and `share` is its part of the
        machine. `processes` is the number of workers that trials are sent to.
        """
        self._job, self._targets, self._scoring = job, targets, scoring
        self._lookup, self._load_file = lookup, load_file
        self._room = Room(this_machine() if share is None else share)
        self._workspaces = Workspaces(load_file, job.workspaces)
        self._ladders = Ladders(
            job, targets, budget, self._room, self._workspaces, limiter_of=limiter_of, processes=processes
        )
        self._batches = Batches(job, book, budget)
        self._asking = Asking(job, targets, load_file, Ends(scoring, self._place_for, self._tools_for))
        self._judge_ladders: dict[str, Ladder] = {}
        self._embeddings: dict[tuple[str, str], array[float]] = {}
        judges = tuple(judge_of(judge, partial(self._ask_judge, judge)) for judge in job.settings.judges)
        self._panel = Panel(judges=judges, how=job.settings.panel)
        self._shows_files = any(judge.sees for judge in judges)
        self._workshop = Workshop()

    async def __aenter__(self) -> LocalExecutor:
        await self._workshop.__aenter__()
        for name, lane in self._ladders.lanes.items():
            for arm in lane.arms:
                target = self._targets[arm.target.id]
                if self._batches.ask(target.spec):
                    ladder = self._batches.ladder(target, self._lookup)
                else:
                    ladder = self._ladders.in_lane(name, target, self._lookup)
                self._asking.ladders[target.spec.id] = ladder
        settings = self._job.settings
        for spec in (*(judge.target for judge in settings.judges), *settings.embedders.values()):
            self._judge_ladders[spec.id] = self._ladders.beside(spec)
            self._batches.add_judge(self._targets[spec.id])
        if settings.user is not None and self._job.mode != "rescore":
            self._asking.user = SimulatedUser(settings.user, self._ladders.beside(settings.user.target).ask)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._batches.close()
        self._asking.close()
        await self._workshop.__aexit__(*exception)
        await self._workspaces.__aexit__(*exception)

    def lanes(self) -> list[Lane]:
        return list(self._ladders.lanes.values())

    def reading(self) -> AbstractContextManager[object]:
        return self._batches.activity.busy()

    def held(self) -> list[str]:
        held = [*self._ladders.held(), *self._batches.held()]
        return [f"{name.split('#')[-1]} {words}" for name, words in held if words]

    def judges(self) -> list[Judge]:
        pairs = zip(self._panel.judges, self._job.settings.judges, strict=True)
        return [judge for judge, spec in pairs if self._targets[spec.target.id].priced]

    async def _ask_judge(self, judge: JudgeSpec, request: Request) -> Outcome:
        with self._batches.activity.busy():
            return await self._judge_ladders[judge.target.id].ask(request)

    async def _embed(self, name: str, text: str) -> Sequence[float] | Failure:
        """Return the embedding of a text; those of the latest texts are kept, for every arm needs the reference's."""
        kept = self._embeddings.get((name, text))
        if kept is not None:
            return kept
        target = self._job.settings.embedders[name].id
        outcome = await self._judge_ladders[target].ask(embedding_request(target, text))
        if isinstance(outcome.result, Failure):
            return outcome.result
        vector = embedding_of(outcome.result)
        self._embeddings[name, text] = vector
        if len(self._embeddings) > _MAX_EMBEDDINGS:
            del self._embeddings[next(iter(self._embeddings))]
        return vector

    async def carry_out(self, trial: Trial, reports: Reports, listener: Listener) -> None:
        """Ask the target and report the answer, then score it and report the score."""
        with self._batches.activity.busy() as busy:
            await self._carry_out(trial, reports, listener, busy)

    async def _carry_out(self, trial: Trial, reports: Reports, listener: Listener, busy: Busy) -> None:
        answer = trial.stored
        if answer is None:
            try:
                async with self._ladders.turns.get(trial.arm.target.id, nullcontext()):
                    if not reports.wanted(trial):
                        return
                    with busy.waiting() if trial.arm.target.batch else nullcontext():
                        outcome = await self._asking.ask(trial, reports, listener)
            finally:
                listener.end()
            if outcome.turns:
                trial = msgspec.structs.replace(trial, turns=outcome.turns)
            answer = await reports.answered(trial, outcome)
            await self._asking.forget(trial)
            raise_if_cancelled()
            if answer is None:
                return
            answer = msgspec.structs.replace(answer, cost_usd=None if outcome.cached else outcome.cost.usd)
            if outcome.cached and self._panel.judges:
                trial = msgspec.structs.replace(trial, judgements=await reports.verdicts(trial))
        result = _missing_tool_use(trial, answer) or _unknown_calls(answer) or await self._score(trial, answer, busy)
        await reports.scored(trial, result)
        if isinstance(result, Score) and result.value == 1 and (spec := trial.arm.workspace_of(trial.case)):
            await self._workspaces.forget(spec, kept_name(trial.case.id, trial.id))

    async def _score(self, trial: Trial, answer: Answer, busy: Busy) -> Score | Unscored:
        shown = trial.case.attach if self._shows_files else ()  # to judges that can see
        files = [await self._load_file(file) for file in shown]
        workspace = self._workspace_of(trial, answer)
        earlier = [self._workspace_of(trial, turn.answer) for turn in trial.turns]
        async with self._room.place(self._scoring.resources_of(trial)):
            return await self._scoring.score(
                trial,
                answer,
                self._batches.panel_of(self._panel, trial, busy),
                trial.judgements,
                self._workshop,
                self._embed,
                files,
                workspace,
                earlier,
            )

    def _tools_for(self, trial: Trial, answer: Answer) -> Tools:
        return Tools(self._workshop, self._embed, self._workspace_of(trial, answer))

    def _place_for(self, trial: Trial) -> AbstractAsyncContextManager[None]:
        return self._room.place(self._scoring.resources_of(trial))

    def _workspace_of(self, trial: Trial, answer: Answer) -> MakeWorkspace | None:
        """Return what makes the workspace as the agent left it, for a scorer that looks into it."""
        if answer.changes is None:
            return None
        spec = trial.arm.workspace_of(trial.case) or WorkspaceSpec()
        return partial(self._workspaces.make, spec, answer.changes)


def _missing_tool_use(trial: Trial, answer: Answer) -> Unscored | None:
    """Return why an answer is not scored if its condition requires tool use that is missing.

    The question is never asked again until a tool is used, because that would select answers.
    """
    condition = trial.arm.condition
    if condition.on_missing_tool_use == "mark":
        return None
    missing = condition.missing(tool_use(answer.trace, [server.name for server in condition.mcp]))
    return Unscored(kind="tool_use", message=missing) if missing else None


def _unknown_calls(answer: Answer) -> Unscored | None:
    """Return why an answer is not scored if its agent called what the doubles of its servers do not have."""
    unknown = unknown_calls(answer.trace)
    if not unknown:
        return None
    more = f"; and {len(unknown) - 1} more" if len(unknown) > 1 else ""
    return Unscored(kind=UNRECORDED, message=f"{unknown[0]}{more}")
