"""Carry out trials in this process, with one event loop and one lane per provider.

A lane has more workers than concurrent calls: while one worker's answer is stored and scored, another worker asks.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import partial

import msgspec

from fairtrial.agents.mcp.server import ServerError
from fairtrial.agents.mcp.tokens import AccessTokens
from fairtrial.agents.workspace.making import Workspaces, kept_name
from fairtrial.core.answer import Answer, EarlierTurn, Failure, Journal, Outcome, Request, Usage
from fairtrial.core.experiment import Arm, Resources, TargetSpec
from fairtrial.core.file import Attachment, File
from fairtrial.core.judge import Judge, Panel
from fairtrial.core.listening import Listener
from fairtrial.core.money import total
from fairtrial.core.score import MakeWorkspace, Score, Unscored
from fairtrial.core.settings import JudgeSpec
from fairtrial.core.target import Target
from fairtrial.core.templates import TemplateError
from fairtrial.core.trace import tool_use
from fairtrial.core.trial import Trial
from fairtrial.core.workshop import Workshop
from fairtrial.core.workspace import WorkspaceSpec
from fairtrial.engine.activity import Busy
from fairtrial.engine.batch_slice import BatchRecords
from fairtrial.engine.batches import Batches
from fairtrial.engine.bench import embedding_of, embedding_request
from fairtrial.engine.cancelling import raise_if_cancelled
from fairtrial.engine.executor import Lane, Reports
from fairtrial.engine.job import Job
from fairtrial.engine.journals import Journals
from fairtrial.engine.ladder import Gate, Ladder, Lookup, Purse, price_of
from fairtrial.engine.limits import Limiter
from fairtrial.engine.pace import Pace
from fairtrial.engine.room import Room, this_machine
from fairtrial.engine.scoring import Scoring
from fairtrial.engine.user import SimulatedUser
from fairtrial.judging.trying import try_judge
from fairtrial.providers.judge_models import judge_of

RUN = ""  # the name of the limit that all lanes share
LimiterOf = Callable[[str, int], Limiter]  # from the name of a limit and its calls at a time
_MOST_WAITING = 20_000  # trials of a lane that wait for batches at a time; each takes 10 KB
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
        book: BatchRecords | None = None,
        limiter_of: LimiterOf | None = None,
        processes: int = 1,
        share: Resources | None = None,
    ) -> None:
        """`book` is the record of batches, which only the process with the store has.

        In a worker, `limiter_of` makes limiters that keep to its part of the limits, and `share` is its part of the
        machine. `processes` is the number of workers that trials are sent to.
        """
        self._job, self._targets, self._scoring = job, targets, scoring
        self._budget, self._lookup, self._load_file = budget, lookup, load_file
        self._processes, self._room = processes, Room(this_machine() if share is None else share)
        self._batches = Batches(job, book, budget)
        self._turns: dict[str, asyncio.Semaphore] = {}  # by target
        self._lanes = self._group()
        # With a single lane, its own limit is the run's limit.
        settings = job.settings
        others = bool(settings.judges or settings.embedders or settings.user)
        shared_gate = len(self._lanes) > 1 or others
        self._limiter_of = limiter_of or (lambda _, most: Limiter(most, settings.retry.max_wait))
        self._gate: Gate = self._limiter_of(RUN, settings.concurrency) if shared_gate else nullcontext()
        self._limiters = {name: self._limiter_of(name, lane.width) for name, lane in self._lanes.items()}
        self._paces: dict[str, Pace] = {}  # by model: providers count each model's calls by themselves
        self._ladders: dict[str, Ladder] = {}
        self._judge_ladders: dict[str, Ladder] = {}
        self._embeddings: dict[tuple[str, str], array[float]] = {}
        judges = tuple(judge_of(judge, partial(self._ask_judge, judge)) for judge in job.settings.judges)
        self._panel = Panel(judges=judges, how=job.settings.panel)
        self._shows_files = any(judge.sees for judge in judges)
        self._workshop = Workshop()
        self._workspaces = Workspaces(load_file, job.workspaces)
        self._journals = Journals(job.journals, job.variables.hide_all)
        self._tokens = AccessTokens()
        self._user: SimulatedUser | None = None

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
            self._turns.update({arm.target.id: turn for arm in arms if not arm.target.batch})
        return Lane(arms, width, _MOST_WAITING if waits else at_once)

    def _width(self, spec: TargetSpec) -> int:
        """Return how many calls to a target may be in flight."""
        here = self._targets[spec.id].most_at_once
        return min(self._job.settings.concurrency, here * self._processes if here else self._job.settings.concurrency)

    async def __aenter__(self) -> LocalExecutor:
        await self._workshop.__aenter__()
        for name, lane in self._lanes.items():
            for arm in lane.arms:
                target = self._targets[arm.target.id]
                if self._batches.ask(target.spec):
                    self._ladders[target.spec.id] = self._batches.ladder(target, self._lookup)
                else:
                    self._ladders[target.spec.id] = self._ladder(target, self._limiters[name], self._lookup)
        settings = self._job.settings
        for spec in (*(judge.target for judge in settings.judges), *settings.embedders.values()):
            self._judge_ladders[spec.id] = self._side_ladder(spec)
            self._batches.add_judge(self._targets[spec.id])
        if settings.user is not None and self._job.mode != "rescore":
            self._user = SimulatedUser(settings.user, self._side_ladder(settings.user.target).ask)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._batches.close()
        await self._workshop.__aexit__(*exception)
        await self._workspaces.__aexit__(*exception)

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

    def _side_ladder(self, spec: TargetSpec) -> Ladder:
        """Return the ladder of a judge, an embedder or a user, which shares its provider's limits with other models."""
        target = self._targets[spec.id]
        if target.lane not in self._limiters:
            self._limiters[target.lane] = self._limiter_of(target.lane, self._width(spec))
        return self._ladder(target, self._limiters[target.lane])

    def lanes(self) -> list[Lane]:
        """Return one lane per provider, so that a slow provider does not delay the others."""
        return list(self._lanes.values())

    def reading(self) -> AbstractContextManager[object]:
        """Keep batches open while more trials are on their way."""
        return self._batches.activity.busy()

    def held(self) -> list[str]:
        """Say which providers hold calls back at the moment, and how."""
        limiters = list(self._limiters.items())  # pages ask from other threads
        held = [(name, limiter.held()) for name, limiter in limiters]
        held += [(name, pace.held()) for name, pace in list(self._paces.items())]
        held += self._batches.held()
        return [f"{name.split('#')[-1]} {words}" for name, words in held if words]

    def judges(self) -> list[Judge]:
        """Return the judges whose calls cost money."""
        pairs = zip(self._panel.judges, self._job.settings.judges, strict=True)
        return [judge for judge, spec in pairs if self._targets[spec.target.id].priced]

    async def try_judge(self, judge: Judge) -> Failure | None:
        """Send a judge one easy question."""
        return await try_judge(judge)

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
                async with self._turns.get(trial.arm.target.id, nullcontext()):
                    if not reports.wanted(trial):
                        return
                    with busy.waiting() if trial.arm.target.batch else nullcontext():
                        ask = self._ask_agent if self._is_agent(trial) else self._ask
                        outcome = await ask(trial, reports, listener)
            finally:
                listener.end()
            if outcome.turns:
                trial = msgspec.structs.replace(trial, turns=outcome.turns)
            answer = await reports.answered(trial, outcome)
            if self._is_agent(trial):
                await self._journals.forget(trial)
            raise_if_cancelled()
            if answer is None:
                return
            answer = msgspec.structs.replace(answer, cost_usd=None if outcome.cached else outcome.cost.usd)
            if outcome.cached and self._panel.judges:
                trial = msgspec.structs.replace(trial, judgements=await reports.verdicts(trial))
        result = _missing_tool_use(trial, answer) or await self._score(trial, answer, busy)
        await reports.scored(trial, result)
        if isinstance(result, Score) and result.value == 1 and (spec := trial.arm.workspace_of(trial.case)):
            await self._workspaces.forget(spec, kept_name(trial.case.id, trial.id))

    async def _score(self, trial: Trial, answer: Answer, busy: Busy) -> Score | Unscored:
        files = await self._shown_files(trial) if self._shows_files else []
        workspace = self._workspace_of(trial, answer)
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
            )

    def _workspace_of(self, trial: Trial, answer: Answer) -> MakeWorkspace | None:
        """Return what makes the workspace as the agent left it, for a scorer that looks into it."""
        if answer.changes is None:
            return None
        spec = trial.arm.workspace_of(trial.case) or WorkspaceSpec()
        return partial(self._workspaces.make, spec, answer.changes)

    async def _shown_files(self, trial: Trial) -> list[File]:
        """Return the files of a case, for judges who can see them."""
        return [await self._load_file(file) for file in trial.case.attach]

    async def _ask_agent(self, trial: Trial, reports: Reports, listener: Listener) -> Outcome:
        """Ask an agent, and say if an earlier session on this trial was interrupted."""
        interrupted = "" if self._job.fresh else await self._journals.interrupted(trial)
        outcome = await self._ask(trial, reports, listener)
        if not interrupted or outcome.cached:
            return outcome
        return msgspec.structs.replace(outcome, tried=(interrupted, *outcome.tried))

    async def _ask(self, trial: Trial, reports: Reports, listener: Listener) -> Outcome:
        """Ask the target; in a conversation turn after turn, each durable before the next one."""
        ladder, turns = self._ladders[trial.arm.target.id], list(trial.turns)
        is_conversation = self._user is not None or bool(trial.case.turns)
        files = [await self._load_file(file) for file in trial.case.attach]
        skills = [await self._load_file(skill.files) for skill in trial.arm.condition.skills if not skill.as_text]
        while True:
            if self._user is not None and turns and turns[-1].reply is None:
                failure = await self._let_user_reply(trial, turns, reports)
                if failure is not None:
                    return _whole_conversation(_not_asked(failure), turns)
            if turns and turns[-1].reply == "":
                answer = turns[-1].answer
                return _whole_conversation(Outcome(result=answer, started_at=time.time()), turns)
            try:
                request = trial.request(
                    stream=self._job.settings.stream,
                    turns=turns if is_conversation else None,
                    files=files,
                    skills=skills,
                )
            except TemplateError as error:
                return _not_asked(Failure(kind="template", message=str(error)))
            try:
                servers = await self._tokens.authorised(request.mcp)
            except ServerError as error:
                return _whole_conversation(_not_asked(Failure(kind="mcp", message=str(error))), turns)
            async with self._followed(trial, request.journal):
                outcome = await ladder.ask(msgspec.structs.replace(request, mcp=servers, listener=listener))
            if isinstance(outcome.result, Failure) or self._is_last(trial, len(turns) + 1):
                return _whole_conversation(outcome, turns)
            turns.append(EarlierTurn(question=request.input, answer=outcome.result, cost=outcome.cost))
            await reports.turn_answered(trial, len(turns) - 1, turns[-1], outcome.cost)

    def _followed(self, trial: Trial, journal: Journal) -> AbstractAsyncContextManager[None]:
        """Keep a journal of what an agent does."""
        return self._journals.follow(trial, journal) if self._is_agent(trial) else nullcontext()

    def _is_agent(self, trial: Trial) -> bool:
        return self._targets[trial.arm.target.id].agent

    def _is_last(self, trial: Trial, turn: int) -> bool:
        """Return whether the answer in this turn (from 1) is the one that is scored."""
        return turn > len(trial.case.turns) if self._user is None else self._user.is_last(turn)

    async def _let_user_reply(self, trial: Trial, turns: list[EarlierTurn], reports: Reports) -> Failure | None:
        """Add the simulated user's reply to the last turn, durably; return why there is none."""
        assert self._user is not None
        reply, cost = await self._user.reply(trial, turns)
        turns[-1] = msgspec.structs.replace(
            turns[-1],
            reply=None if isinstance(reply, Failure) else reply,
            user_cost=total([turns[-1].user_cost, cost]),
        )
        await reports.turn_answered(trial, len(turns) - 1, turns[-1], cost)
        if not isinstance(reply, Failure):
            return None
        message = reply.message if reply.kind == "budget" else f"the simulated user: {reply.message}"
        # The target is not to blame, whatever is wrong with the user.
        return Failure(kind=reply.kind if reply.kind == "budget" else "user", message=message)


def _not_asked(failure: Failure) -> Outcome:
    return Outcome(result=failure, attempts=0, started_at=time.time())


def _whole_conversation(outcome: Outcome, turns: Sequence[EarlierTurn]) -> Outcome:
    """Return the outcome of a conversation: its last answer, with the tokens, time and cost of all turns."""
    if not turns:
        return outcome
    result = outcome.result
    earlier = [turn.answer for turn in turns if turn.reply != ""]  # otherwise it is the last answer itself
    if isinstance(result, Answer):
        usages = [answer.usage for answer in (*earlier, result)]
        known = [usage for usage in usages if usage is not None]
        usage = sum(known, Usage()) if len(known) == len(usages) else None
        latencies = [answer.latency_ms for answer in (*earlier, result)]
        latency = None if None in latencies else sum(ms for ms in latencies if ms is not None)
        result = msgspec.structs.replace(result, usage=usage, latency_ms=latency)
    elif result.kind != "budget":
        result = msgspec.structs.replace(result, message=f"turn {len(turns) + 1}: {result.message}")
    cost = total([*(turn.cost for turn in turns), outcome.cost])
    return msgspec.structs.replace(outcome, result=result, cost=cost, turns=tuple(turns))


def _missing_tool_use(trial: Trial, answer: Answer) -> Unscored | None:
    """Return why an answer is not scored if its condition requires tool use that is missing.

    The question is never asked again until a tool is used, because that would select answers.
    """
    condition = trial.arm.condition
    if condition.on_missing_tool_use == "mark":
        return None
    missing = condition.missing(tool_use(answer.trace, [server.name for server in condition.mcp]))
    return Unscored(kind="tool_use", message=missing) if missing else None
