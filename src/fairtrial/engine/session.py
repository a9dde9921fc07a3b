"""The engine: takes trials from the plan as fast as the limits allow, and ends with nothing lost.

One lane per provider, so that a provider that makes us wait does not hold up the others. A lane has more
workers than places at the gate: while one worker's answer is being stored and scored, another one asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

import msgspec

from fairtrial.core.answer import UNUSABLE, Answer, Failure, Outcome, Request
from fairtrial.core.errors import BadRowError
from fairtrial.core.hearing import Ear, listening
from fairtrial.core.judge import Judgement, Panel, judge_of
from fairtrial.core.score import Score, Unscored
from fairtrial.core.stopping import case_order
from fairtrial.core.suite import Arm, Case, JudgeSpec, Settings
from fairtrial.core.target import Target
from fairtrial.core.trace import tool_use
from fairtrial.core.trial import Trial
from fairtrial.core.variables import Variables
from fairtrial.core.workshop import Workshop
from fairtrial.engine.budget import Budget
from fairtrial.engine.crowd import for_each
from fairtrial.engine.decision import Decision
from fairtrial.engine.ladder import Gate, Ladder, Lookup
from fairtrial.engine.limits import Limiter, calls_allowed
from fairtrial.engine.prices import FREE, find_price
from fairtrial.engine.progress import Progress
from fairtrial.engine.scoring import Scoring
from fairtrial.engine.trials import trials_of
from fairtrial.judging.trying import try_judge
from fairtrial.store import Saver, Store
from fairtrial.store import rows as store_rows
from fairtrial.store.ledger import ledger_row
from fairtrial.store.opinions import has_judged
from fairtrial.store.store import Place
from fairtrial.store.todo import Mode, next_step

T = TypeVar("T")
_SLICE = 250  # cases read at a time
_NO_MONEY = 1e-12  # what is left of sums of binary fractions
_HOPELESS = 20  # so many failures in a row, and more than are under way at once, mean that nobody is there


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What one session has to do on a run."""

    run_id: str
    plan_id: str
    series_id: str | None
    case_count: int
    arms: tuple[Arm, ...]
    settings: Settings
    mode: Mode
    fresh: bool = False  # nothing of it is stored yet, so nothing needs to be looked up
    judged: bool = False  # whether any answer will need a judge
    stopped: str | None = None  # why it had ended early, where it had


class Halt(msgspec.Struct, frozen=True):
    """Why a run stopped before its end; `unusable` means that it will not go on as configured."""

    reason: str
    unusable: bool = False
    interrupted: bool = False
    decided: bool = False  # nothing is missing: the question is answered


class Engine:
    """One session of work on one run."""

    def __init__(
        self,
        work: Work,
        targets: dict[str, Target],
        store: Store,
        variables: Variables,
        scoring: Scoring,
        progress: Progress,
        *,
        spent: float = 0.0,
    ) -> None:
        self.work, self.progress = _within_open_files(work, progress), progress
        self.halt: Halt | None = None
        self.ears: Callable[[Trial], Ear] | None = None  # who listens to answers while they are given
        self._targets, self._store, self._variables, self._scoring = targets, store, variables, scoring
        self.hide = variables.hide
        self._budget = Budget(work.settings.budget_usd, spent, keep=self._keep_at_risk)
        self._ladders: dict[str, Ladder] = {}
        self._answered: set[str] = set()
        self._in_a_row: dict[str, int] = {}  # failures of a target or a judge
        self._given_up: dict[str, str] = {}  # targets that nobody is behind any more; the others go on without them
        self._session: asyncio.Task[None] | None = None
        judges = tuple(judge_of(judge, partial(self._ask_judge, judge)) for judge in work.settings.judges)
        self._panel = Panel(judges=judges, how=work.settings.panel)
        self._order: list[int] | None = None
        self._decision: Decision | None = None
        if work.settings.stop is not None:
            self._order = case_order(work.run_id, work.case_count)
            if work.mode == "resume" and not work.settings.stop.over:
                self._decision = Decision(work.settings.stop, work.arms, self._order)
        self._moved = asyncio.Event()  # a case is complete: those who were too far ahead may go on
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="fairtrial-reader")

    def interrupt(self) -> None:
        """Stop now: calls under way are given up, everything answered is kept."""
        self.halt = Halt("interrupted", interrupted=True)
        if self._session is not None:
            self._session.cancel()

    async def run(self) -> None:
        """Work until there is nothing left to do or `halt` says why not."""
        async with Workshop() as self._workshop, Saver(self._store.write, self.progress.lock) as self._saver:
            self._session = asyncio.create_task(self._all_lanes())
            try:
                await self._session
                if self._given_up:
                    self._stop(Halt("; ".join(self._given_up.values())))
            except asyncio.CancelledError:
                self._session.cancel()
                await asyncio.gather(self._session, return_exceptions=True)
                if self.halt is None or not self.halt.interrupted:
                    raise
            except BaseExceptionGroup as group:
                raise _first(group) from group
            finally:
                self._readers.shutdown(wait=False)
                await self._close_ledger()

    async def _keep_at_risk(self, usd: float) -> None:
        await self._saver.save("ledgers", ledger_row(self.work.run_id, usd))

    async def _close_ledger(self) -> None:
        """No call is under way any more: whatever was spent and is in no row belongs to the run all the same."""
        await self._saver.flush()
        beside = self._budget.unrecorded
        if beside.charged > _NO_MONEY or beside.unknown or self._budget.limited:
            self._saver.save("ledgers", ledger_row(self.work.run_id, 0.0, beside))

    async def _all_lanes(self) -> None:
        lanes: dict[str, list[Arm]] = {}
        for arm in self.work.arms:
            # A target with a limit of its own has a lane of its own: it must not slow down its provider's others.
            own = f"#{arm.target.id}" if arm.target.concurrency else ""
            lanes.setdefault(f"{self._targets[arm.target.id].lane}{own}", []).append(arm)
        # A single lane's own limit is the run's limit.
        several = len(lanes) > 1 or bool(self.work.settings.judges)
        gate: Gate = asyncio.Semaphore(self.work.settings.concurrency) if several else nullcontext()
        limiters = {name: Limiter(self._width(arms), self.work.settings.retry.max_wait) for name, arms in lanes.items()}
        self._open_bench(gate, limiters)
        await self._try_judges()
        if self.halt is not None:
            return
        async with asyncio.TaskGroup() as group:
            for name, arms in lanes.items():
                for arm in arms:
                    self._ladders[arm.target.id] = self._ladder(self._targets[arm.target.id], gate, limiters[name])
                width = self._width(arms)
                group.create_task(self._lane(arms, workers=width if self._decision else 2 * width + 16))

    def _open_bench(self, gate: Gate, limiters: dict[str, Limiter]) -> None:
        """Judges climb the same ladder, and share the limits of a provider with its other models."""
        settings = self.work.settings
        for judge in settings.judges:
            target = self._targets[judge.target.id]
            most = min(settings.concurrency, target.most_at_once or settings.concurrency)
            limiter = limiters.setdefault(target.lane, Limiter(most, settings.retry.max_wait))
            self._ladders[judge.target.id] = self._ladder(target, gate, limiter, cached=False)

    async def _try_judges(self) -> None:
        """Ask every judge that costs money once before answers are bought that it could not judge."""
        if not self.work.judged:
            return
        for judge, spec in zip(self._panel.judges, self.work.settings.judges, strict=True):
            if not self._targets[spec.target.id].priced or await self._proven(judge.key):
                continue
            failure = await try_judge(judge)
            if failure is not None:
                self._stop(
                    Halt(
                        f"the judge {judge.name} cannot be used ({failure.message}); no answer was bought for it",
                        unusable=not failure.retryable,
                    )
                )

    async def _proven(self, judge_key: str) -> bool:
        return not self.work.fresh and await self._read(has_judged, self._store, self.work.run_id, judge_key)

    async def _ask_judge(self, judge: JudgeSpec, request: Request) -> Outcome:
        return await self._ladders[judge.target.id].ask(request)

    def _width(self, arms: Sequence[Arm]) -> int:
        limits = [self.work.settings.concurrency]
        for arm in arms:
            limits += [
                limit
                for limit in (arm.target.concurrency, self._targets[arm.target.id].most_at_once)
                if limit is not None
            ]
        return min(limits)

    def _ladder(self, target: Target, gate: Gate, limiter: Limiter, *, cached: bool = True) -> Ladder:
        prices = self.work.settings.prices
        price = asyncio.ensure_future(self._read(find_price, target.spec, prices)) if target.priced else FREE
        return Ladder(
            target,
            self.work.settings,
            gate=gate,
            limiter=limiter,
            budget=self._budget,
            price=price,
            lookup=self._lookup() if self.work.settings.cache and cached else None,
        )

    def _lookup(self) -> Lookup:
        async def lookup(trial_id: str) -> Answer | None:
            row = await self._read(self._store.cached_answer, trial_id, self.work.run_id, self.work.series_id)
            return None if row is None else store_rows.read_answer(row, self._variables)

        return lookup

    async def _lane(self, arms: Sequence[Arm], workers: int) -> None:
        async def attend(trial: Trial) -> None:
            if self.halt is None and trial.arm.target.id not in self._given_up:
                await self._attend(trial)

        await for_each(self._trials(arms), attend, workers)

    async def _trials(self, arms: Sequence[Arm]) -> AsyncIterator[Trial]:
        """What is left to do in these arms, slice by slice, so that memory does not grow with the plan."""
        work = self.work
        for first in range(0, work.case_count, _SLICE):
            cases, stored = await self._read(self._slice, first)
            numbers = {case.position: first + number for number, case in enumerate(cases)}
            for trial in trials_of(cases, arms, benchmark_mode=work.settings.benchmark_mode):
                number = numbers[trial.case.position]
                if self.halt is not None:
                    return
                row = stored.get((trial.case.position, trial.arm.position, trial.repeat))
                step = next_step(row, work.mode)
                if self._decision is not None:
                    await self._keep_level(number)
                    self._decision.expect(trial.case)
                    if step == "nothing" and row is not None:
                        self._look(trial, row["score_value"])
                if step == "ask":
                    yield trial
                elif step == "score":
                    assert row is not None
                    yield msgspec.structs.replace(trial, stored=store_rows.read_answer(row, self._variables))

    async def _read(self, function: Callable[..., T], *args: Any) -> T:
        """Read from the store without blocking the loop, in threads that nothing else can occupy."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, function, *args)

    def _slice(self, first: int) -> tuple[list[Case], dict[Place, dict[str, Any]]]:
        """Some cases in the order in which they are asked, and what is stored of their trials."""
        work, store = self.work, self._store
        if self._order is None:
            cases = store.cases(work.plan_id, first, _SLICE, self._variables)
            rows = () if work.fresh else store.trial_rows(work.run_id, self._scoring.number, first=first, count=_SLICE)
        else:
            chosen = self._order[first : first + _SLICE]
            cases = store.cases_at(work.plan_id, chosen, self._variables)
            rows = () if work.fresh else store.trial_rows(work.run_id, self._scoring.number, cases=chosen)
        return cases, {(row["case_position"], row["arm_position"], row["repeat"]): row for row in rows}

    async def _keep_level(self, number: int) -> None:
        """Where the run may end at any case, no lane runs far ahead of the others: what it asks might not be needed."""
        while self._decision is not None and self.halt is None:
            if number <= self._decision.complete + self.work.settings.concurrency:
                return
            self._moved.clear()
            await self._moved.wait()

    def _look(self, trial: Trial, score: float | None) -> None:
        """One more trial has ended: is the question answered?"""
        if self._decision is None:
            return
        self._decision.ended(trial.case.position, trial.arm.position, score)
        self._moved.set()
        if self._decision.reason is not None:
            self._stop(Halt(self._decision.reason, decided=True))

    async def _attend(self, trial: Trial) -> None:
        """The life of a trial: asked, stored, scored, stored, counted."""
        answer = trial.stored
        if answer is None:
            request = trial.request(stream=self.work.settings.stream)
            with self._heard(trial):
                outcome = await self._ladders[trial.arm.target.id].ask(request)
            if self._stops_the_run(trial, outcome):
                return
            outcome = await self._save_outcome(trial, outcome)
            self.progress.answered(trial, outcome)
            if isinstance(outcome.result, Failure):
                self._look(trial, None)
                return
            answer = outcome.result
        kept = await self._kept(trial) if trial.stored is not None and self._panel.judges else []
        result = self._gated(trial, answer) or await self._scoring.score(
            trial, answer, self._panel, kept, self._workshop
        )
        if isinstance(result, Unscored) and result.kind == "budget":
            self._stop(self._spent())
            await self._save_judgements(trial, result)  # what was paid for is kept, and used when there is more money
            return
        await self._save_score(trial, result)
        self._count_verdicts(result.judgements)
        self.progress.scored(trial, result)
        self._look(trial, result.value if isinstance(result, Score) else None)

    async def _save_outcome(self, trial: Trial, outcome: Outcome) -> Outcome:
        """Make an answer or a failure durable. What no database can hold is a failure, with what it cost."""
        recorded = partial(self._budget.recorded, outcome.cost)
        row = store_rows.trial_row(self.work.run_id, trial, outcome, self._variables)
        try:
            await self._saver.save("trials", row, recorded)
        except BadRowError as error:
            failure = Failure(kind="malformed", message=f"the answer cannot be stored ({error})")
            outcome = msgspec.structs.replace(outcome, result=failure)
            row = store_rows.trial_row(self.work.run_id, trial, outcome, self._variables)
            await self._saver.save("trials", row, recorded)
        return outcome

    @contextmanager
    def _heard(self, trial: Trial) -> Iterator[None]:
        """While the answer is given, whoever wants to can listen; a judge's reply later on is not for them."""
        if self.ears is None:
            yield
            return
        ear = self.ears(trial)
        token = listening.set(ear)
        try:
            yield
        finally:
            listening.reset(token)
            ear.end()

    def _gated(self, trial: Trial, answer: Answer) -> Unscored | None:
        """Why this answer gets no score though it is one: a condition may insist on the use of its tools.

        It is never asked for again until the tool was used: that would select answers.
        """
        condition = trial.arm.condition
        if condition.on_missing_tool_use == "mark":
            return None
        missing = condition.missing(tool_use(answer.trace, [server.name for server in condition.mcp]))
        return Unscored(kind="tool_use", message=missing) if missing else None

    async def _save_score(self, trial: Trial, result: Score | Unscored) -> None:
        """The score and every judge's verdict behind it, durable together."""
        run_id, number = self.work.run_id, self._scoring.number
        self._save_judgements(trial, result)
        for file in result.files if isinstance(result, Score) else ():
            for table, row in store_rows.file_rows(run_id, trial, file).items():
                self._saver.save(table, row)
        scorer, scales = self._scoring.spec_of(trial), self._scoring.scales_of(trial)
        as_row = partial(store_rows.score_row, run_id, trial, number, scorer, variables=self._variables, scales=scales)
        try:
            await self._saver.save("scores", as_row(result))
        except BadRowError as error:
            await self._saver.save("scores", as_row(Unscored(kind="crashed", message=str(error))))

    def _save_judgements(self, trial: Trial, result: Score | Unscored) -> asyncio.Future[list[None]]:
        run_id, number = self.work.run_id, self._scoring.number
        return asyncio.gather(
            *(
                self._saver.save(
                    "judgements",
                    store_rows.judgement_row(run_id, trial, number, judgement, self._variables),
                    partial(self._budget.recorded, judgement.cost),
                )
                for judgement in result.judgements
                if judgement.stored != number and (judgement.asked or judgement.stored is not None)
            )
        )

    async def _kept(self, trial: Trial) -> list[Judgement]:
        """Usable verdicts on this answer, of an earlier session or of another scoring; none of them is bought again."""
        place = (trial.case.position, trial.arm.position, trial.repeat)
        rows = await self._read(self._store.judgements, self.work.run_id, place)
        mine = self._scoring.number
        return [
            store_rows.read_judgement(row)
            for row in sorted(rows, key=lambda row: (row["scoring"] == mine, row["scoring"]))
            if row["failure_kind"] is None
        ]

    def _count_verdicts(self, judgements: Sequence[Judgement]) -> None:
        """A judge that fails again and again is not there; to buy more answers for it would be a waste."""
        for judgement in judgements:
            if judgement.stored is not None or judgement.failure_kind == "budget":
                continue
            name = f"the judge {judgement.judge}"
            if judgement.failure_kind is None:
                self._in_a_row[name] = 0
            elif self._fails_again(name):
                reason = f"the last {self._in_a_row[name]} verdicts all failed ({judgement.failure_message})"
                self._stop(Halt(f"{name}: {reason}"))

    def _fails_again(self, name: str) -> bool:
        """One more failure in a row of a target or a judge; whether that is one too many."""
        self._in_a_row[name] = self._in_a_row.get(name, 0) + 1
        return self._in_a_row[name] >= max(_HOPELESS, 2 * self.work.settings.concurrency)

    def _spent(self) -> Halt:
        return Halt(f"the budget of ${self.work.settings.budget_usd:g} is reached: another call could exceed it")

    def _stops_the_run(self, trial: Trial, outcome: Outcome) -> bool:
        """Whether this trial was not really tried, and stays to be done in another session."""
        result, target = outcome.result, trial.arm.target.id
        if self._budget.exhausted:
            self._stop(self._spent())
        if isinstance(result, Answer):
            self._answered.add(target)
            self._in_a_row[target] = 0
            return False
        if result.kind == "budget":
            return True
        if result.kind in UNUSABLE and target not in self._answered:
            what = "its key is refused" if result.kind == "auth" else "there is no such model"
            self._stop(Halt(f"{target}: {what} ({result.message})", unusable=True))
            return True
        if self._fails_again(target):
            count = self._in_a_row[target]
            self._given_up.setdefault(target, f"{target}: the last {count} trials all failed ({result.message})")
            if len(self._given_up) == len({arm.target.id for arm in self.work.arms}) or self._decision is not None:
                self._stop(Halt("; ".join(self._given_up.values())))
        return False

    def _stop(self, halt: Halt) -> None:
        self._moved.set()
        if self.halt is None:
            reason = self._variables.hide(halt.reason)
            self.halt = msgspec.structs.replace(halt, reason=reason)


def _within_open_files(work: Work, progress: Progress) -> Work:
    """The same work with no more calls at once than this process may have open."""
    wanted = work.settings.concurrency
    allowed = calls_allowed(wanted)
    if allowed == wanted:
        return work
    progress.note = f"only {allowed} calls at once: this process may not open more files (ulimit -n)"
    return msgspec.structs.replace(work, settings=msgspec.structs.replace(work.settings, concurrency=allowed))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that started it all."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
