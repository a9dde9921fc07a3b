"""The workers of a session: started where the cluster has room, replaced when they are lost."""

from __future__ import annotations

import asyncio
import math
import time
from asyncio import FIRST_COMPLETED
from collections.abc import Callable

from fairtrial.core.errors import TargetUnusableError, WorkersGoneError
from fairtrial.core.experiment import Resources
from fairtrial.engine.budget import Budget
from fairtrial.engine.cluster.leases import Lease
from fairtrial.engine.cluster.link import Backend, BackendAwayError, Link, WorkerLostError
from fairtrial.engine.cluster.members import CrewMember, Trouble, Work, WorkerGroup
from fairtrial.engine.cluster.messages import Briefing, Report, decode
from fairtrial.text.printable import counted

_PATIENCE = 10.0  # seconds after which a worker that has not started is not counted on
_LOOK_EVERY = 1.0  # seconds between two looks at whether the cluster has more room
_LONGEST_STEP = 2.0  # seconds that one look counts for at most: this process may have been stopped
_SILENCE = 60.0  # seconds without a word, after which a worker is lost; it may have reason to be silent for `timeout`
_SILENCE_AT_THE_END = 5.0
_AWAY = 120.0  # seconds without a worker that a run waits for a cluster that does not answer, or whose workers die
_NO_MACHINE = 600.0  # and for machines: a cluster that grows may take minutes to get one
_MANY_STILLBORN = 3  # workers that ended before they had started, after which there is a longer pause each time
_LONGEST_PAUSE = 15.0
_LINGER = 0.002  # seconds that a worker waits for more to report, for each worker there is
_LONGEST_LINGER = 0.5


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
        self._tasks: list[asyncio.Task[None]] = []
        self._started = asyncio.Event()
        self._problem: BaseException | None = None
        self._closed = False
        self.trials = 1  # that are carried out at the same time in all workers
        self.silence = _SILENCE
        self.ending = False  # nobody who is silent is waited for any more

    @property
    def members(self) -> list[CrewMember]:
        """All workers that can carry out trials."""
        return [member for group in self._groups.values() for member in group.open]

    async def open(self, briefing: Callable[[Resources], Briefing], shares: list[Resources]) -> None:
        """Start workers with these shares; return when there is one of each kind, or raise why there cannot be."""
        self._briefing = briefing
        for share in shares:
            self._group(share)
        self._tasks = [asyncio.create_task(self._keep_looking()), asyncio.create_task(self._keep_listening())]
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
        troubles = [group.trouble.reason for group in self._groups.values() if group.trouble]
        if troubles:
            return list(dict.fromkeys(troubles))
        if not self.members and not self._closed:
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
        latest = time.monotonic()
        while True:
            now = time.monotonic()
            passed, latest = min(now - latest, _LONGEST_STEP), now
            try:
                for group in list(self._groups.values()):
                    await self._grow(group, passed)
                    self._wait_within_limits(group, passed)
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

    async def _keep_listening(self) -> None:
        """Lose the workers that say nothing for too long: they are frozen, or cannot be reached."""
        while True:
            latest = time.monotonic()
            await asyncio.sleep(_LOOK_EVERY)
            passed = min(time.monotonic() - latest, _LONGEST_STEP)
            limit = _SILENCE_AT_THE_END if self.ending else self.silence
            for group in self._groups.values():
                for member in group.open:
                    member.silent += passed
                    if member.silent > limit:
                        self._lose(group, member, WorkerLostError(f"it has said nothing for {limit:.0f} s"))

    def _wait_within_limits(self, group: WorkerGroup, passed: float) -> None:
        """Raise if a group has been without a worker that could start for too long."""
        if group.open or group.trouble is None:
            group.troubled = 0.0
            return
        group.troubled += passed
        if group.troubled > group.trouble.limit:
            waited = f"{group.trouble.reason}, and that for {group.trouble.limit:.0f} s"
            raise WorkersGoneError(f"{waited}: {self._lost_with_workers()}")

    def _lost_with_workers(self) -> str:
        """Say what was lost with the workers that are no more."""
        waiting = [work for group in self._groups.values() for work, _ in group.waiting]
        begun = sum(work.losses > 0 for work in waiting)
        if not begun:
            return "no trial was under way"
        return f"{counted(begun, 'trial')} that workers had begun {'is' if begun == 1 else 'are'} asked again"

    async def _grow(self, group: WorkerGroup, passed: float) -> None:
        busy = sum(len(member.works) for member in group.members) + len(group.waiting)
        wanted = min(busy or self.trials, self.trials, self._backend.most // len(self._groups)) - len(group.members)
        starting = any(not member.opened for member in group.members)
        if group.open and (starting or wanted <= 0):
            group.note(None)
            return
        try:
            room = await self._backend.vacancies(group.share)
        except BackendAwayError as error:
            group.note(Trouble(str(error), _AWAY))
            return
        group.note(self._trouble(group, room))
        group.pause = max(0.0, group.pause - passed)
        if starting or group.pause > 0:
            return
        more = min(wanted, room or 0)
        # A worker for which there is no room yet tells the cluster that it should grow.
        for _ in range(max(more, 0 if group.members else 1)):
            self._start(group)

    @staticmethod
    def _trouble(group: WorkerGroup, room: int | None) -> Trouble | None:
        if group.stillborn >= _MANY_STILLBORN:
            return Trouble("every worker ends before it has started", _AWAY)
        if room is None:
            return Trouble(f"no machine of the cluster is there for a worker with {_shown(group.share)}", _NO_MACHINE)
        return None

    async def _make_room(self, group: WorkerGroup) -> None:
        """End a worker of another group that has nothing to do, if one for this group has not started for long."""
        now = time.monotonic()
        if (
            not (group.waiting and group.members)
            or group.open
            or any(now - member.requested < _PATIENCE for member in group.members)
        ):
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
            group.stillborn = 0
            group.note(None)
            self._started.set()
            member.tasks.append(asyncio.create_task(self._send(group, member)))
            self._on_report(member, Report())  # it gets its first shares
            self._serve(group)
            while True:
                linger = min(_LONGEST_LINGER, _LINGER * len(self.members))
                report = decode(await member.link.collect(linger))
                member.silent = 0.0
                self._on_report(member, report)
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
        if not member.opened:
            group.stillborn += 1
            group.pause = min(_LONGEST_PAUSE, 2.0**group.stillborn / 4)
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
        self._closed = True
        for task in self._tasks:
            task.cancel()
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
                return await _last_report(member.link) if opened else Report()
        except (WorkerLostError, TimeoutError):
            return None
        finally:
            member.link.kill()

    def _ended(self, member: CrewMember, report: Report | None) -> None:
        if report is not None:
            self._on_report(member, report)
        self._on_gone(member, report is None)


async def _last_report(link: Link) -> Report:
    """Close a worker and return its last report; raise TimeoutError if it says nothing any more."""
    closing = asyncio.ensure_future(link.close())
    try:
        while not closing.done():
            sign = asyncio.ensure_future(link.collect(0.0))
            done, _ = await asyncio.wait((closing, sign), timeout=_SILENCE_AT_THE_END, return_when=FIRST_COMPLETED)
            sign.cancel()
            await asyncio.gather(sign, return_exceptions=True)
            if not done:
                raise TimeoutError
        report: Report = decode(closing.result())
        return report
    finally:
        closing.cancel()


def _shown(share: Resources) -> str:
    return ", ".join(f"{name} {amount:g}" for name, amount in share.items())
