"""Ask a target in batches: gather requests, submit them in slices, wait for the results, and hand them out.

A batch is stored before it is submitted, with its requests, and its id at the provider before it is waited for. So a
session that was killed is continued by the next one: requests that are in a batch already are only waited for.
Where a batch may have been submitted and its id is unknown, it is looked for at the provider first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from typing import Any, NamedTuple

import msgspec

from fairtrial.core.answer import PENDING, Answer, Failure, Request
from fairtrial.core.batch import BatchPlace, BatchRecord, batch_name, request_name
from fairtrial.core.formatting import span
from fairtrial.engine.activity import Activity
from fairtrial.engine.batch_book import BatchBook
from fairtrial.providers.batch import BatchApi, BatchError, BatchStatus, is_unsure

FIRST_PAUSE, LONGEST_PAUSE, _GROWTH = 5.0, 300.0, 1.5  # seconds between two looks at a batch
_ATTEMPTS = 8  # to submit a batch
_LOOKS_FOR_LOST = 3  # until a batch that may have been submitted is taken for one that was not
_RECENTLY = 600.0  # seconds
_NO_RESULT = Failure(kind="lost", message="the batch ended without a result for this request", maybe_billed=True)


class Delivered(NamedTuple):
    """The result of a request, and where it was; without a place, it is left to the next session."""

    result: Answer | Failure
    place: BatchPlace | None = None


class BatchEntry(NamedTuple):
    """A request that waits for its result."""

    key: str
    request: Request
    usd: float
    line: bytes
    reply: asyncio.Future[Delivered]


class BatchSlice:
    """The entries of one batch by their positions, and how far it is."""

    def __init__(self, record: BatchRecord) -> None:
        self.record = record
        self.entries: dict[int, BatchEntry] = {}
        self.size = 0
        self.answered = 0
        self.followed = False
        self.stalled = False  # it waits until others have ended

    def place(self, position: int) -> BatchPlace:
        entry = self.entries[position]
        return BatchPlace(self.record.number, position, entry.key, entry.usd)

    def waiting(self) -> dict[int, BatchEntry]:
        """Return the entries that are waited for."""
        return {position: entry for position, entry in self.entries.items() if not entry.reply.done()}


class BatchQueue:
    """The batches of one target."""

    def __init__(self, api: BatchApi, target: str, book: BatchBook, activity: Activity) -> None:
        self._api, self._target, self._book, self._activity = api, target, book, activity
        self._gathered: BatchSlice | None = None
        self._slices: dict[int, BatchSlice] = {}  # by number: batches that somebody waits for
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()  # a batch ended, so that there is room for another one
        self._problem = ""  # why nothing can be read or submitted at the moment
        activity.when_quiet(self.flush)

    async def close(self) -> None:
        """Stop waiting; batches go on at the provider."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def held(self) -> str:
        """Say what is waited for."""
        slices = list(self._slices.values())  # pages ask from other threads
        if not slices:
            return ""
        requests = sum(part.record.requests for part in slices)
        answered = sum(part.answered for part in slices)
        batches = "a batch" if len(slices) == 1 else f"{len(slices)} batches"
        oldest = min(part.record.created_at for part in slices)
        words = f"waits for {batches}: {answered:,} of {requests:,} answered after {span(time.time() - oldest)}"
        return f"{words} ({self._problem})" if self._problem else words

    def place_of(self, key: str) -> BatchPlace | None:
        """Return where a request is that an earlier session submitted, or may have submitted."""
        pending = self._book.pending(key)
        return pending[0] if pending else None

    async def ask(self, key: str, request: Request, usd: float) -> Delivered:
        """Return the result of a request, hours or days later; `usd` is what it may cost."""
        reply: asyncio.Future[Delivered] = asyncio.get_running_loop().create_future()
        pending = self._book.pending(key)
        if pending is None:
            self._gather(key, request, usd, reply)
        else:
            place, record = pending
            part = self._slices.setdefault(record.number, BatchSlice(record))
            part.entries[place.position] = BatchEntry(key, request, usd, b"", reply)
        self._activity.touch()
        return await reply

    def _gather(self, key: str, request: Request, usd: float, reply: asyncio.Future[Delivered]) -> None:
        """Add a request to the next batch; submit it once it is full."""
        api, part = self._api, self._gathered
        request = self._api.target.understood(msgspec.structs.replace(request, stream=False))
        if part is None or len(part.entries) >= api.most_requests:
            part = self._begin()
        line = api.line(request_name(self._book.run_id, part.record.number, len(part.entries)), request)
        if part.entries and part.size + len(line) > api.most_bytes:
            part = self._begin()
            line = api.line(request_name(self._book.run_id, part.record.number, 0), request)
        part.entries[len(part.entries)] = BatchEntry(key, request, usd, line, reply)
        part.size += len(line) + 1

    def _begin(self) -> BatchSlice:
        if self._gathered is not None:
            self._send(self._gathered)
        record = BatchRecord(number=self._book.next_number(), target=self._target, requests=0, created_at=time.time())
        self._gathered = BatchSlice(record)
        return self._gathered

    def flush(self) -> None:
        """Submit what was gathered, and read the batches that are waited for."""
        gathered, self._gathered = self._gathered, None
        if gathered is not None and gathered.waiting():
            self._send(gathered)
        for part in list(self._slices.values()):
            if not part.followed:
                self._follow(part, self._from_earlier_session(part))

    def _send(self, part: BatchSlice) -> None:
        part.entries = part.waiting()  # those that were cancelled meanwhile are not sent
        part.record = msgspec.structs.replace(part.record, requests=len(part.entries), created_at=time.time())
        self._slices[part.record.number] = part
        self._follow(part, self._submitted(part))

    def _follow(self, part: BatchSlice, work: Coroutine[Any, Any, None]) -> None:
        part.followed = True

        async def follow() -> None:
            try:
                await work
            except Exception as error:  # a mistake of ours ends the run, wherever it happens
                for entry in part.waiting().values():
                    entry.reply.set_exception(error)
            finally:
                self._slices.pop(part.record.number, None)
                self._ended.set()

        task = asyncio.create_task(follow())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- one batch -----------------------------------------------------------------------------------

    async def _submitted(self, part: BatchSlice) -> None:
        """Store a batch, submit it, and wait for its results."""
        await self._book.save(part.record, [part.place(position) for position in part.entries])
        problem = await self._submit(part)
        if problem is None:
            await self._collect(part)
        elif problem.kind == PENDING:
            self._leave(part, problem)
        elif problem.message.startswith("HTTP 413") and len(part.entries) > 1:
            await self._again(part, halves=True)
        else:
            await self._book.void(part.record)
            self._fail(part, problem)

    async def _from_earlier_session(self, part: BatchSlice) -> None:
        """Wait for a batch of an earlier session, which may not have got as far as submitting it."""
        if part.record.id is None:
            recent = time.time() - part.record.created_at < _RECENTLY  # it may be on its way
            batch = await self._find(part, looks=_LOOKS_FOR_LOST if recent else 1)
            if isinstance(batch, Failure):
                self._leave(part, batch)
                return
            if batch is None:
                await self._again(part)
                return
            await self._know(part, batch)
        await self._collect(part)

    async def _submit(self, part: BatchSlice) -> Failure | None:
        """Submit a batch and store its id; return why that is impossible."""
        name = batch_name(self._book.run_id, part.record.number)
        lines = [entry.line for entry in part.entries.values()]
        problem = Failure(kind="batch", message="it was not submitted")
        for attempt in range(_ATTEMPTS):
            batch = await self._api.submit(name, lines)
            if isinstance(batch, str):
                await self._know(part, batch)
                return None
            problem, self._problem = batch, batch.message
            if is_unsure(batch):
                found = await self._find(part, looks=_LOOKS_FOR_LOST)
                if isinstance(found, str):
                    await self._know(part, found)
                    return None
                if isinstance(found, Failure):  # nobody can tell whether it was submitted: the next session looks again
                    return msgspec.structs.replace(found, kind=PENDING)
            elif not batch.retryable:
                break
            await asyncio.sleep(max(batch.retry_after or 0.0, _pause(attempt)))
        return problem

    async def _find(self, part: BatchSlice, looks: int) -> str | Failure | None:
        """Look for a batch that may have been submitted; None if it was not."""
        name, first = batch_name(self._book.run_id, part.record.number), min(part.entries)
        named = request_name(self._book.run_id, part.record.number, first)
        look = 0
        while True:
            try:
                found = await self._api.find(name, named, part.record.requests, part.record.created_at)
            except BatchError as error:
                found = error.failure
            if isinstance(found, str):
                return found
            if isinstance(found, Failure):
                if found.kind != PENDING and not found.retryable:
                    return found
                self._problem = found.message
            elif look + 1 >= looks:
                return None
            await asyncio.sleep(_pause(look))
            look += 1

    async def _know(self, part: BatchSlice, batch: str) -> None:
        """Store the id of a batch at its provider: from now on it can be waited for in any session."""
        part.record, self._problem = msgspec.structs.replace(part.record, id=batch), ""
        await self._book.save(part.record)

    async def _collect(self, part: BatchSlice) -> None:
        status = await self._wait(part)
        if isinstance(status, Failure):
            self._leave(part, status)
        elif status.crowded:
            await self._when_there_is_room(part, status)
        elif status.failure is not None:
            self._fail(part, status.failure)
        else:
            await self._read(part)

    async def _read(self, part: BatchSlice) -> None:
        """Hand out the results of a batch that has ended; try again if that breaks off."""
        part.record = msgspec.structs.replace(part.record, ended_at=time.time())
        await self._book.save(part.record)
        problem = _NO_RESULT
        for attempt in range(_ATTEMPTS):
            try:
                while asked := part.waiting():  # more may begin to wait while results are read
                    await self._hand_out(part)
                    self._fail(part, _NO_RESULT, asked)
            except BatchError as error:
                problem = error.failure
                if problem.kind == "model":
                    self._fail(part, _gone(problem))
                    return
                if not problem.retryable:
                    self._leave(part, problem)
                    return
                self._problem = problem.message
                await asyncio.sleep(_pause(attempt))
            else:
                return
        if problem.kind == "malformed":  # its results will not become readable
            self._fail(part, msgspec.structs.replace(problem, kind="lost", retryable=False, maybe_billed=True))
        else:
            self._leave(part, Failure(kind=PENDING, message=self._problem))

    async def _wait(self, part: BatchSlice) -> BatchStatus | Failure:
        """Wait until a batch has ended, with growing pauses."""
        assert part.record.id is not None
        looks = 0
        while True:
            status = await self._api.look(part.record.id)
            if isinstance(status, BatchStatus):
                self._problem, part.answered = "", status.answered
                if status.ended:
                    return status
            elif status.kind == "model":
                return BatchStatus(ended=True, failure=_gone(status))
            elif not status.retryable:
                return status
            else:
                self._problem = status.message
            await asyncio.sleep(_pause(looks))
            looks += 1

    async def _hand_out(self, part: BatchSlice) -> None:
        assert part.record.id is not None
        prefix = f"{batch_name(self._book.run_id, part.record.number)}-"
        async for name, result in self._api.results(part.record.id):
            position = name.removeprefix(prefix)
            entry = part.entries.get(int(position)) if name.startswith(prefix) and position.isdigit() else None
            if entry is None or entry.reply.done():
                continue  # its result is stored, or its trial has not been read yet
            target, request = self._api.target, entry.request
            read = result if isinstance(result, Answer) else target.learned(result, request, target.sent(request))
            entry.reply.set_result(Delivered(read, part.place(int(position))))

    # -- what else may become of a batch -------------------------------------------------------------

    def _fail(self, part: BatchSlice, problem: Failure, entries: Mapping[int, BatchEntry] | None = None) -> None:
        """Let requests of a batch that still have no result fail for one reason: these, or all."""
        for position, entry in (part.waiting() if entries is None else entries).items():
            if not entry.reply.done():
                entry.reply.set_result(Delivered(problem, part.place(position)))

    def _leave(self, part: BatchSlice, problem: Failure) -> None:
        """Leave a batch to the next session, because it cannot be read now."""
        message = f"a batch with {part.record.requests:,} requests cannot be read ({problem.message})"
        for entry in part.waiting().values():
            entry.reply.set_result(Delivered(Failure(kind=PENDING, message=message)))

    async def _when_there_is_room(self, part: BatchSlice, status: BatchStatus) -> None:
        """Submit a batch again that was too much for the account: after another one has ended, or in halves."""
        others = sum(not other.stalled for other in self._slices.values() if other is not part)
        if not others and len(part.waiting()) < 2:
            assert status.failure is not None
            self._fail(part, status.failure)
            return
        if others:
            self._problem, part.stalled = "the account takes no more at a time", True
            self._ended.clear()
            await self._ended.wait()
        await self._again(part, halves=not others)

    async def _again(self, part: BatchSlice, *, halves: bool = False) -> None:
        """Put the requests of a batch that was not carried out into new ones."""
        await self._book.void(part.record)
        entries = list(part.waiting().values())
        middle = (len(entries) + 1) // 2 if halves else len(entries)
        self._slices.pop(part.record.number, None)
        for some in filter(None, (entries[:middle], entries[middle:])):
            self._begin()
            for entry in some:
                self._gather(entry.key, entry.request, entry.usd, entry.reply)
            self.flush()


def _pause(looks: int) -> float:
    return min(LONGEST_PAUSE, float(FIRST_PAUSE * _GROWTH ** min(looks, 40)))


def _gone(problem: Failure) -> Failure:
    message = f"the provider does not have the batch any more ({problem.message})"
    return Failure(kind="lost", message=message, maybe_billed=True)
