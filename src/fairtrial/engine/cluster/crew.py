"""The workers of a session: started where the cluster has room, replaced when they are lost."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable

from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import Resources
from fairtrial.core.listening import Listener
from fairtrial.core.trial import Trial
from fairtrial.engine.budget import Budget
from fairtrial.engine.cluster.leases import Lease
from fairtrial.engine.cluster.link import Backend, Link, WorkerLostError
from fairtrial.engine.cluster.messages import Briefing, DriverOrders, Report, WorkerCall, decode, encode
from fairtrial.engine.executor import Reports

ALONE_AFTER = 2  # workers that were lost with a trial, after which it gets one for itself
_PATIENCE = 10.0  # seconds after which a worker that has not started is not counted on
_LOOK_EVERY = 1.0  # seconds between two looks at whether the cluster has more room
_LINGER = 0.002  # seconds that a worker waits for more to report, for each worker there is
_LONGEST_LINGER = 0.5


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


class WorkerGroup:
    """Workers with the same share of a machine, and the trials that wait for one of them."""

    def __init__(self, share: Resources) -> None:
        self.share = share
        self.members: list[CrewMember] = []
        self.waiting: deque[tuple[Work, asyncio.Future[CrewMember]]] = deque()

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


class Crew:
    """Starts workers, gives them trials, and passes on their reports."""

    def __init__(
        self,
        backend: Backend,
        budget: Budget,
        on_report: Callable[[CrewMember, Report], None],
        on_gone: Callable[[CrewMember, bool], None],
        hide: Callable[[str], str],
    ) -> None:
        self._backend, self._budget, self._hide = backend, budget, hide
        self._on_report, self._on_gone = on_report, on_gone
        self._groups: dict[tuple[tuple[str, float], ...], WorkerGroup] = {}
        self._briefing: Callable[[Resources], Briefing] | None = None
        self._look = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._started = asyncio.Event()
        self._problem: BaseException | None = None
        self.trials = 1  # that are carried out at the same time in all workers

    @property
    def members(self) -> list[CrewMember]:
        """All workers that can carry out trials."""
        return [member for group in self._groups.values() for member in group.open]

    async def open(self, briefing: Callable[[Resources], Briefing], shares: list[Resources]) -> None:
        """Start workers with these shares; return when there is one of each kind, or raise why there cannot be."""
        self._briefing = briefing
        for share in shares:
            self._group(share)
        self._looking = asyncio.create_task(self._keep_looking())
        while not all(group.open for group in self._groups.values()):
            await self._started.wait()
            self._started.clear()
            self._raise_problem()

    def _raise_problem(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _group(self, share: Resources) -> WorkerGroup:
        """Return workers whose share of a machine is enough."""
        for group in self._groups.values():
            if share.keys() == group.share.keys() and all(group.share[name] >= share[name] for name in share):
                return group
        key = tuple(sorted(share.items()))
        self._groups[key] = WorkerGroup(dict(key))
        self._look.set()
        return self._groups[key]

    def held(self) -> list[str]:
        """Say which workers are waited for."""
        if self._groups and not self.members:
            return ["workers are starting"]
        now = time.monotonic()
        late = [
            group
            for group in self._groups.values()
            if group.waiting and not group.open and all(now - one.requested > _PATIENCE for one in group.members)
        ]
        return [f"the cluster has no room for a worker with {_shown(group.share)}" for group in late]

    async def assign(self, work: Work, share: Resources) -> CrewMember:
        """Give a trial to a worker, waiting for one if all have enough to do."""
        self._raise_problem()
        group = self._group(share)
        member = None if group.waiting else group.room_for(work, self._capacity(group))
        if member is None:
            found: asyncio.Future[CrewMember] = asyncio.get_running_loop().create_future()
            group.waiting.append((work, found))
            self._look.set()
            try:
                member = await found
            except asyncio.CancelledError:
                if found.done() and not found.cancelled():
                    self.release(found.result(), work)
                raise
        member.works[work.number] = work
        return member

    def release(self, member: CrewMember, work: Work) -> None:
        """Take a trial from a worker, which may get another one."""
        member.works.pop(work.number, None)
        for group in self._groups.values():
            if member in group.members:
                self._serve(group)

    def _capacity(self, group: WorkerGroup) -> int:
        """Return how many trials a worker may have: all of them have their part, also those that are starting."""
        now = time.monotonic()
        coming = sum(not member.opened and now - member.requested < _PATIENCE for member in group.members)
        return max(2, math.ceil(self.trials / max(1, len(group.open) + coming)))

    def _serve(self, group: WorkerGroup) -> None:
        while group.waiting:
            work, found = group.waiting[0]
            member = None if found.done() else group.room_for(work, self._capacity(group))
            if member is None and not found.done():
                return
            group.waiting.popleft()
            if member is not None:
                member.works[work.number] = work
                found.set_result(member)

    # -- starting and losing -------------------------------------------------------------------------

    async def _keep_looking(self) -> None:
        """Start workers whenever there is work for more of them and the cluster has room."""
        while True:
            try:
                for group in list(self._groups.values()):
                    await self._grow(group)
                    await self._make_room(group)
                    self._serve(group)
            except Exception as error:  # raised where trials are carried out
                self.fail(error)
                return
            try:
                async with asyncio.timeout(_LOOK_EVERY):
                    await self._look.wait()
            except TimeoutError:
                pass
            self._look.clear()

    async def _grow(self, group: WorkerGroup) -> None:
        busy = sum(len(member.works) for member in group.members) + len(group.waiting)
        wanted = min(busy or self.trials, self.trials, self._backend.most // len(self._groups)) - len(group.members)
        if any(not member.opened for member in group.members):
            return
        more = min(wanted, await self._backend.vacancies(group.share)) if wanted > 0 else 0
        # A worker for which there is no room yet tells the cluster that it should grow.
        for _ in range(max(more, 0 if group.members else 1)):
            self._start(group)

    async def _make_room(self, group: WorkerGroup) -> None:
        """End a worker of another group that has nothing to do, if one for this group has not started for long."""
        now = time.monotonic()
        if not group.waiting or group.open or any(now - member.requested < _PATIENCE for member in group.members):
            return
        for other in self._groups.values():
            idle = [member for member in other.open if not member.works and not other.waiting and other is not group]
            for member in idle[:1]:
                member.opened = False
                other.members.remove(member)
                report = await self._close_member(member, _PATIENCE)
                self._ended(member, report)

    def _start(self, group: WorkerGroup) -> None:
        member = CrewMember(self._backend.start(group.share), Lease(self._budget))
        group.members.append(member)
        member.tasks.append(asyncio.create_task(self._attend(group, member)))

    async def _attend(self, group: WorkerGroup, member: CrewMember) -> None:
        """Open a worker and pass on its reports until it is lost."""
        assert self._briefing is not None
        try:
            problem = await member.link.open(self._backend.encode(self._briefing(group.share)))
            if problem is not None:
                raise TargetUnusableError(self._hide(problem))
            member.opened = True
            self._started.set()
            member.tasks.append(asyncio.create_task(self._send(group, member)))
            self._on_report(member, Report())  # it gets its first shares
            self._serve(group)
            while True:
                linger = min(_LONGEST_LINGER, _LINGER * len(self.members))
                self._on_report(member, decode(await member.link.collect(linger)))
        except WorkerLostError as error:
            self._lose(group, member, error)
        except TargetUnusableError as error:
            group.members.remove(member)
            member.link.kill()
            if not group.open:
                self.fail(error)
        except Exception as error:  # a mistake of ours; raised where trials are carried out
            self.fail(error)

    async def _send(self, group: WorkerGroup, member: CrewMember) -> None:
        try:
            await member.send()
        except WorkerLostError as error:
            self._lose(group, member, error)

    def _lose(self, group: WorkerGroup, member: CrewMember, error: WorkerLostError) -> None:
        if member.lost:
            return
        member.lost, member.opened = True, False
        group.members.remove(member)
        self._on_gone(member, True)
        works, member.works = member.works, {}
        for work in works.values():
            work.inbox.put_nowait(error)
        for task in member.tasks:
            if task is not asyncio.current_task():
                task.cancel()
        member.link.kill()
        self._look.set()

    def fail(self, error: BaseException) -> None:
        """Have the first error raised wherever a trial is carried out, or waits for a worker."""
        if self._problem is not None:
            return
        self._problem = error
        self._started.set()
        for group in self._groups.values():
            while group.waiting:
                _, found = group.waiting.popleft()
                if not found.done():
                    found.set_exception(self._problem)
            for member in group.members:
                for work in member.works.values():
                    work.inbox.put_nowait(error)

    async def close(self, seconds: float) -> None:
        """End all workers, each with its last report if it gives one in time."""
        if self._looking is not None:
            self._looking.cancel()
        members = [member for group in self._groups.values() for member in group.members]
        self._groups = {}
        reports = await asyncio.gather(*(self._close_member(member, seconds) for member in members))
        for member, report in zip(members, reports, strict=True):
            self._ended(member, report)

    async def _close_member(self, member: CrewMember, seconds: float) -> Report | None:
        """End a worker; return its last report, or None if there is none."""
        opened, member.opened = member.opened, False
        for task in member.tasks:
            task.cancel()
        try:
            async with asyncio.timeout(seconds):
                report: Report = decode(await member.link.close()) if opened else Report()
                return report
        except (WorkerLostError, TimeoutError):
            return None
        finally:
            member.link.kill()

    def _ended(self, member: CrewMember, report: Report | None) -> None:
        if report is not None:
            self._on_report(member, report)
        self._on_gone(member, report is None)


def _shown(share: Resources) -> str:
    return ", ".join(f"{name} {amount:g}" for name, amount in share.items())
