"""Read from the store during a session without blocking the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from fairtrial.agents.workspace.changes import with_texts
from fairtrial.core.answer import Answer, EarlierTurn
from fairtrial.core.experiment import Case
from fairtrial.core.file import Attachment, File
from fairtrial.core.judge import Judgement
from fairtrial.core.place import Place, place_of
from fairtrial.core.trial import Trial
from fairtrial.engine.files import FileCache
from fairtrial.engine.job import Job
from fairtrial.store import Store, rows
from fairtrial.store.files import contents, stored_changes
from fairtrial.store.opinions import has_judged
from fairtrial.store.transcripts import turn_rows
from fairtrial.store.waiting import Waiting

T = TypeVar("T")
SLICE = 250  # cases read at a time
_AT_ONCE = 4
_ELSEWHERE = -1  # where a verdict of another run is stored: in none of this run's scorings


class CaseSlice(NamedTuple):
    """Some cases in the order in which they are asked, with the stored rows of their trials."""

    cases: list[Case]
    stored: dict[Place, dict[str, Any]]
    turns: dict[Place, tuple[EarlierTurn, ...]]  # of conversations that were begun


class StoreReader:
    """Reads in threads of its own, so that nothing else can block them."""

    def __init__(self, store: Store, job: Job, scoring: int, waiting: Waiting) -> None:
        self._store, self._job, self._scoring = store, job, scoring
        self._files = FileCache(self._load_file)
        self._waiting, self._at_once = waiting, asyncio.Semaphore(_AT_ONCE)

    async def _read(self, function: Callable[..., T], *args: Any) -> T:
        async with self._at_once:
            return await self._waiting.call_in_thread(function, *args)

    async def slice(self, positions: Sequence[int]) -> CaseSlice:
        """Return these cases, in this order."""
        return await self._read(self._slice, positions)

    def _slice(self, positions: Sequence[int]) -> CaseSlice:
        job, store = self._job, self._store
        cases = store.cases_at(job.plan_id, positions, job.variables)
        stored = () if job.fresh else store.trial_rows(job.run_id, self._scoring, cases=positions)
        return CaseSlice(cases, {place_of(row): row for row in stored}, {} if job.fresh else self._turns(cases))

    def _turns(self, cases: list[Case]) -> dict[Place, tuple[EarlierTurn, ...]]:
        positions = [case.position for case in cases if case.turns or self._job.settings.user is not None]
        turns: dict[Place, tuple[EarlierTurn, ...]] = {}
        for row in turn_rows(self._store, self._job.run_id, positions) if positions else ():
            turns[place_of(row)] = (*turns.get(place_of(row), ()), rows.read_turn(row, self._job.variables))
        return turns

    def answer(self, row: dict[str, Any]) -> Answer:
        """Return a stored answer with its variables filled in."""
        return rows.read_answer(row, self._job.variables)

    async def cached_answer(self, trial_id: str) -> Answer | None:
        """Return an earlier run's answer to exactly this trial, if there is one."""
        row = await self._read(self._store.cached_answer, trial_id, self._job.run_id, self._job.series_id)
        if row is None:
            return None
        changes = await self._read(self._changes, row["run_id"], place_of(row))
        return msgspec.structs.replace(self.answer(row), changes=changes)

    async def with_changes(self, trial: Trial) -> Trial:
        """Return the trial with what its agent changed so far, which is only read for a trial that is carried out."""
        place, run_id = trial.place, self._job.run_id
        turns = []
        for number, turn in enumerate(trial.turns):
            changes = await self._read(self._changes, run_id, place, number)
            turns.append(msgspec.structs.replace(turn, answer=msgspec.structs.replace(turn.answer, changes=changes)))
        stored = trial.stored
        if stored is not None:
            stored = msgspec.structs.replace(stored, changes=await self._read(self._changes, run_id, place))
        return msgspec.structs.replace(trial, stored=stored, turns=tuple(turns))

    def _changes(self, run_id: str, place: Place, turn: int | None = None) -> File | None:
        changes = stored_changes(self._store, run_id, place, turn)
        if changes is None:
            return None
        return msgspec.structs.replace(changes, body=with_texts(changes.body, self._job.variables.reveal))

    async def cached_judgements(self, trial_id: str) -> tuple[Judgement, ...]:
        """Return the usable verdicts on an earlier run's answer to exactly this trial."""
        row = await self._read(self._store.cached_answer, trial_id, self._job.run_id, self._job.series_id)
        if row is None:
            return ()
        verdicts = await self._read(self._store.judgements, row["run_id"], place_of(row))
        usable = (rows.read_judgement(verdict) for verdict in verdicts if verdict["failure_kind"] is None)
        return tuple(msgspec.structs.replace(judgement, stored=_ELSEWHERE) for judgement in usable)

    async def file(self, attachment: Attachment) -> File:
        """Return a file that is sent with a case."""
        return await self._files.get(attachment)

    async def _load_file(self, attachment: Attachment) -> File:
        found = await self._read(contents, self._store, [attachment.sha256])
        media, body = found[attachment.sha256]
        return File(name=attachment.name, media=media, body=body)

    async def judgements(self, trial: Trial) -> tuple[Judgement, ...]:
        """Return usable verdicts on this answer from earlier sessions or scorings, to avoid paying for them twice."""
        verdicts = await self._read(self._store.judgements, self._job.run_id, trial.place)
        ordered = sorted(verdicts, key=lambda row: (row["scoring"] == self._scoring, row["scoring"]))
        return tuple(rows.read_judgement(row) for row in ordered if row["failure_kind"] is None)

    async def has_judged(self, judge_key: str) -> bool:
        """Return whether a judge has already given a verdict in this run."""
        return not self._job.fresh and await self._read(has_judged, self._store, self._job.run_id, judge_key)
