"""Pairwise comparison of the arms of a run: a judge sees two stored answers to one case, in both orders."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

from fairtrial.analyse.pairs import PairsSummary, summarise_pairs
from fairtrial.config.money import check_prices
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Arm, Case
from fairtrial.core.file import File
from fairtrial.core.functions import Functions
from fairtrial.core.judge import Judge, Judgement
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.core.money import total
from fairtrial.core.place import place_of
from fairtrial.core.templates import fill
from fairtrial.engine.bench import Bench, judge_pair
from fairtrial.engine.budget import Budget
from fairtrial.engine.job import Job
from fairtrial.engine.patience import Patience
from fairtrial.engine.targets import open_targets
from fairtrial.engine.workers import for_each
from fairtrial.judging.pairs import PageEvidence, Pair, pair_hash
from fairtrial.store import Saver, Store, opinions
from fairtrial.store.files import attachments, contents
from fairtrial.store.ledger import charged, ledger_row
from fairtrial.store.rows import decode, read_answer
from fairtrial.webpage.looking import fact_lines
from fairtrial.workflows.stored import check_keys, stored_job, with_judge, without_second

_SLICE = 250
Watch = Callable[[int], None]  # called with the number of newly finished pairs


async def apair(
    name: str = "latest",
    *,
    judge: str | None = None,
    arms: Sequence[str] = (),
    instructions: str = "",
    overrides: dict[str, Any] | None = None,
    functions: Functions | None = None,
    store: Store | None = None,
    watch: Watch | None = None,
) -> PairsSummary:
    """Let judges compare the answers of every two arms, case by case. Earlier comparisons are not repeated."""
    store = store or Store(create=False)
    record = store.find_run(name)
    job = without_second(with_judge(store, stored_job(store, record.id, "rescore", overrides or {}, functions), judge))
    if not job.settings.judges:
        raise FairtrialError("this run has no judge: give one with --judge")
    check_keys(job.settings.judges)
    check_prices((), job.settings)
    chosen = _chosen_arms(job.arms, arms)
    specs = [spec.target for spec in job.settings.judges]
    async with open_targets(
        specs, job.folder, job.variables, concurrency=job.settings.concurrency, functions=job.functions
    ) as targets:
        with store.lease(record.id) as lease:
            async with Saver(lease.write, keep_late=lease.keep_late) as saver:
                bench = Bench(job.settings.judges, targets, job.settings, budget=_budget(store, job, saver))
                pairing = _Pairing(store, job, record.scoring, bench, chosen, instructions, saver, watch)
                await pairing.run()
    names = [arm.name for arm in job.arms]
    judge_prompts = {(judge.key, pair_hash(judge.instructions, instructions)) for judge in bench.judges}
    rows = (
        row
        for row in opinions.pairs(store, record.id)
        if (row["judge_key"], row["prompt_hash"]) in judge_prompts and {row["arm_one"], row["arm_other"]} <= set(chosen)
    )
    return summarise_pairs(record.id, record.suite_name, names, rows, exhausted=bench.budget.exhausted)


def _budget(store: Store, job: Job, saver: Saver) -> Budget:
    """Return the rest of the run's budget; spending is recorded before it happens."""

    async def keep(usd: float) -> None:
        await saver.save("ledgers", ledger_row(job.run_id, usd))

    return Budget(job.settings.budget_usd, charged(store, job.run_id, job.series_id), keep)


def _chosen_arms(arms: Sequence[Arm], names: Sequence[str]) -> list[int]:
    positions = {arm.name: arm.position for arm in arms}
    unknown = [name for name in names if name not in positions]
    if unknown:
        raise FairtrialError(f"this run has no arm `{unknown[0]}`; its arms: {', '.join(positions)}")
    chosen = sorted({positions[name] for name in names} or positions.values())
    if len(chosen) < 2:
        raise FairtrialError("a comparison needs two arms: there is only one")
    if len(chosen) > MOST_ARMS:
        raise FairtrialError(
            f"judges compare every two of at most {MOST_ARMS} arms, and these are {len(chosen):,}, which makes "
            f"{math.comb(len(chosen), 2):,} pairs for every case: choose two with --arms A B"
        )
    return chosen


class _Todo(NamedTuple):
    """One pair of answers for one judge to compare."""

    judge: Judge
    case: Case
    repeat: int
    one: int
    other: int
    pair: Pair


class _Pairing:
    """One session of pairwise comparison."""

    def __init__(
        self,
        store: Store,
        job: Job,
        scoring: int,
        bench: Bench,
        arms: list[int],
        instructions: str,
        saver: Saver,
        watch: Watch | None,
    ) -> None:
        self._store, self._job, self._bench = store, job, bench
        self._saver = saver
        self._scoring = scoring
        self._arms, self._instructions, self._watch = arms, instructions, watch
        self._patience = Patience(job.settings.concurrency)
        self._given_up = False

    async def run(self) -> None:
        try:
            await for_each(self._todos(), self._judge, workers=self._job.settings.concurrency)
        finally:
            await self._saver.flush()
            unrecorded = self._bench.budget.unrecorded
            self._saver.save("ledgers", ledger_row(self._job.run_id, 0.0, unrecorded), paid=unrecorded)

    async def _judge(self, todo: _Todo) -> None:
        values = self._job.arms[todo.one].condition.values(todo.case)
        verdicts = await judge_pair(
            todo.judge,
            todo.pair,
            case_id=todo.case.id,
            number=todo.repeat,
            instructions=self._instructions,
            fill=partial(fill, values=values),
        )
        if not any(verdict.asked for verdict in verdicts):
            return  # the budget was reached before the first call
        self._count_failures(todo.judge.name, verdicts)
        place = (todo.case.position, todo.repeat, todo.one, todo.other)
        row = opinions.pair_row(self._job.run_id, place, verdicts, self._job.variables)
        cost = total(verdict.cost for verdict in verdicts)
        await self._saver.save("pairs", row, partial(self._bench.budget.recorded, cost), cost)
        if self._watch:
            self._watch(1)

    def _count_failures(self, judge: str, verdicts: tuple[Judgement, Judgement]) -> None:
        """Give up on a judge that keeps failing: it is unavailable, and more calls would only waste time."""
        if any(verdict.failure_kind is not None for verdict in verdicts):
            self._given_up |= self._patience.failed(judge)
        else:
            self._patience.succeeded(judge)

    async def _todos(self) -> AsyncIterator[_Todo]:
        for first in range(0, self._store.plan(self._job.plan_id).case_count, _SLICE):
            for todo in await asyncio.to_thread(list, self._remaining(first)):
                if self._bench.budget.exhausted or self._given_up:
                    return
                yield todo

    def _remaining(self, first: int) -> Iterator[_Todo]:
        """Yield the pairs left to compare in a slice of the cases."""
        done = self._done(first)
        answers = {
            (row["case_position"], row["repeat"], row["arm_position"]): row
            for row in self._store.trial_rows(self._job.run_id, self._scoring, first=first, count=_SLICE)
            if row["failure_kind"] is None and row["arm_position"] in self._arms
        }
        pictures = attachments(self._store, self._job.run_id, first=first, count=_SLICE)
        for case in self._store.cases(self._job.plan_id, first, _SLICE, self._job.variables):
            repeats = sorted({repeat for position, repeat, _ in answers if position == case.position})
            for repeat, (one, other) in ((r, arms) for r in repeats for arms in combinations(self._arms, 2)):
                rows = [row for arm in (one, other) if (row := answers.get((case.position, repeat, arm)))]
                if len(rows) < 2:
                    continue
                texts = [read_answer(row, self._job.variables).text for row in rows]
                shown = [self._shown(row, pictures.get(place_of(row), {})) for row in rows]
                pair = Pair(
                    question=case.input,
                    one=texts[0],
                    other=texts[1],
                    reference="\nor\n".join(case.accepted),
                    one_shown=shown[0],
                    other_shown=shown[1],
                )
                for judge in self._bench.judges:
                    prompt = pair_hash(judge.instructions, self._instructions)
                    if (judge.key, prompt, case.position, repeat, one, other) not in done:
                        yield _Todo(judge, case, repeat, one, other, pair)

    def _shown(self, row: dict[str, Any], pictures: dict[str, str]) -> PageEvidence:
        """Return what a browser recorded of an answer's page, if there is one."""
        page = (decode(row["score_details"]) or {}).get("page")
        if page is None:
            return PageEvidence()
        files = contents(self._store, list(pictures.values()))
        images = [files[pictures[name]] for name in sorted(pictures)]
        return PageEvidence(
            facts=fact_lines(page), images=tuple(File(media=media, body=body) for media, body in images)
        )

    def _done(self, first: int) -> set[tuple[Any, ...]]:
        names = ("judge_key", "prompt_hash", "case_position", "repeat", "arm_one", "arm_other")
        rows = opinions.pairs(self._store, self._job.run_id, first=first, count=_SLICE)
        return {tuple(row[name] for name in names) for row in rows if row["failure_kind"] is None}
