"""The driver's view of its workers, and of the trials that they have or that wait for them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import NamedTuple

from fairtrial.core.experiment import Resources
from fairtrial.core.listening import Listener
from fairtrial.core.trial import Trial
from fairtrial.engine.cluster.leases import Lease
from fairtrial.engine.cluster.link import Link
from fairtrial.engine.cluster.messages import DriverOrders, WorkerCall, encode
from fairtrial.engine.executor import Reports

ALONE_AFTER = 2  # workers that were lost with a trial, after which it gets one for itself


class Work:
    """A trial that is being carried out, and what has been reported about it."""

    def __init__(self, number: int, trial: Trial, reports: Reports, listener: Listener) -> None:
        self.number, self.trial, self.reports, self.listener = number, trial, reports, listener
        self.losses = 0  # workers that were lost with it
        self.done = False  # nothing is left to do about it
        self.inbox: asyncio.Queue[WorkerCall | BaseException] = asyncio.Queue()

    @property
    def alone(self) -> bool:
        """Whether it may be what ends workers, so that no other trial should be there."""
        return self.losses >= ALONE_AFTER


class CrewMember:
    """One worker, seen from the driver."""

    def __init__(self, link: Link, lease: Lease) -> None:
        self.link, self.lease = link, lease
        self.works: dict[int, Work] = {}
        self.opened = self.lost = self.tight = False
        self.requested = time.monotonic()
        self.silent = 0.0  # seconds since it said something, of those in which this process could hear it
        self.tasks: list[asyncio.Task[None]] = []
        self._orders = DriverOrders()
        self._something = asyncio.Event()

    def order(self) -> DriverOrders:
        """Return the orders that go out next, to add to them."""
        self._something.set()
        return self._orders

    async def send(self) -> None:
        """Send orders for ever, as many at a time as there are."""
        while True:
            await self._something.wait()
            self._something.clear()
            orders, self._orders = self._orders, DriverOrders()
            await self.link.deliver(encode(orders))


class Trouble(NamedTuple):
    """Why no worker can start, and how many seconds that is waited for."""

    reason: str
    limit: float


class WorkerGroup:
    """Workers with the same share of a machine, and the trials that wait for one of them."""

    def __init__(self, share: Resources) -> None:
        self.share = share
        self.members: list[CrewMember] = []
        self.waiting: deque[tuple[Work, asyncio.Future[CrewMember]]] = deque()
        self.trouble: Trouble | None = None
        self.troubled = 0.0  # seconds that this trouble has lasted
        self.stillborn = 0  # workers in a row that ended before they had started
        self.pause = 0.0  # seconds until the next one is started

    def note(self, trouble: Trouble | None) -> None:
        """Note what is in the way of workers, if anything."""
        if (trouble and trouble.limit) != (self.trouble and self.trouble.limit):
            self.troubled = 0.0
        self.trouble = trouble

    @property
    def open(self) -> list[CrewMember]:
        """The workers that can carry out trials."""
        return [member for member in self.members if member.opened]

    def room_for(self, work: Work, capacity: int) -> CrewMember | None:
        """Return the worker with the fewest trials, if it can take another one."""
        free = [member for member in self.open if not any(other.alone for other in member.works.values())]
        member = min(free, key=lambda one: len(one.works), default=None)
        if member is None or len(member.works) >= (1 if work.alone else capacity):
            return None
        return member
