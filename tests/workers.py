"""Workers in the process of a test: as quick as a function call, and lost whenever a test wants it."""

import asyncio
import random
from collections import Counter

from fairtrial.engine.cluster.link import WorkerLostError
from fairtrial.engine.cluster.messages import encode
from fairtrial.engine.cluster.worker import Worker

_MOST_LOSSES = 2  # of one trial's workers: after five it is given up, and some trial would be by chance


class WorkersHere:
    """A backend whose workers live in this event loop; every worker is lost after a random number of batches."""

    def __init__(self, most=3, *, lose=0.0, seed=0, room=None):
        self.most, self.lose, self.luck = most, lose, random.Random(seed)
        self.links, self.lost = [], 0
        self.losses = Counter()  # by trial
        self.room = room

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for link in self.links:
            link.kill()
        await asyncio.gather(*(link.gone() for link in self.links))

    def encode(self, briefing):
        return encode(briefing)

    async def vacancies(self, share):
        return (self.most if self.room is None else self.room) - sum(link.alive for link in self.links)

    def start(self, share):
        link = LinkHere(self)
        self.links.append(link)
        return link


class LinkHere:
    def __init__(self, backend):
        self.backend, self.worker, self.alive = backend, Worker(), True
        self.losing = asyncio.Event()

    async def _call(self, coroutine):
        """Run a method of the worker unless it is lost meanwhile; batches are lost before or after they are read."""
        if not self.alive:
            coroutine.close()
            raise WorkerLostError("it is gone")
        call, losing = asyncio.ensure_future(coroutine), asyncio.ensure_future(self.losing.wait())
        try:
            await asyncio.wait([call, losing], return_when=asyncio.FIRST_COMPLETED)
            if not self.alive:
                raise WorkerLostError("it was lost")
            result = await call
        finally:
            losing.cancel()
        if self.backend.luck.random() < self.backend.lose and self._may_be_lost():
            self.backend.lost += 1
            self.backend.losses.update(self.worker._trials.keys())
            self.kill()
            if self.backend.luck.random() < 0.5:
                raise WorkerLostError("it was lost")
        return result

    def _may_be_lost(self):
        return all(self.backend.losses[number] < _MOST_LOSSES for number in self.worker._trials)

    async def open(self, briefing):
        return await self.worker.open(briefing)

    async def deliver(self, orders):
        await self._call(self.worker.deliver(orders))

    async def collect(self, linger):
        return await self._call(self.worker.collect(0))

    async def close(self):
        if not self.alive:
            raise WorkerLostError("it is gone")
        return await self.worker.close()

    def kill(self):
        """As of a process that is killed: nothing that it does afterwards reaches anybody."""
        self.alive = False
        self.losing.set()
        for task in self.worker._trials.values():
            task.cancel()

    async def gone(self):
        await self.worker.close()
