"""What calls and scorers take of a machine while they run, where a suite says so (`resources: {cpu: 1}`)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from fairtrial.core.experiment import Resources


def this_machine() -> dict[str, float]:
    """Return what a single process may use: all processors; what else there is, it cannot know."""
    return {"cpu": float(os.cpu_count() or 1)}


class Room:
    """Resources that are shared by calls and scorers. What it does not know of is not limited."""

    def __init__(self, total: Mapping[str, float]) -> None:
        self._total, self._free = dict(total), dict(total)
        self._changed: list[asyncio.Future[None]] = []
        self._anywhere = Reservation(self, {})

    def place(self, resources: Resources) -> Reservation:
        """Return a context that takes these resources; who wants more than there is gets everything."""
        if not resources:
            return self._anywhere
        return Reservation(
            self, {name: min(resources[name], self._total[name]) for name in resources if name in self._total}
        )

    async def take(self, resources: Resources) -> None:
        """Wait until these resources are free, and take them."""
        while any(self._free[name] < amount for name, amount in resources.items()):
            changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._changed.append(changed)
            await changed
        for name, amount in resources.items():
            self._free[name] -= amount

    def give_back(self, resources: Resources) -> None:
        """Let others have these resources."""
        for name, amount in resources.items():
            self._free[name] += amount
        changed, self._changed = self._changed, []
        for waiting in changed:
            if not waiting.done():
                waiting.set_result(None)


class Reservation:
    """Takes resources of a room while it is entered; any number of times at once."""

    def __init__(self, room: Room, resources: Resources) -> None:
        self._room, self._resources = room, resources

    async def __aenter__(self) -> None:
        if self._resources:
            await self._room.take(self._resources)

    async def __aexit__(self, *_: object) -> None:
        if self._resources:
            self._room.give_back(self._resources)
