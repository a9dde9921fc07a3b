"""Workers in processes of this machine, connected by pipes: for scorers that keep more than one processor busy."""

from __future__ import annotations

import asyncio

from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Resources
from fairtrial.core.time_limit import time_limit
from fairtrial.engine.cluster import pipes
from fairtrial.engine.cluster.link import WorkerLostError
from fairtrial.engine.cluster.messages import Briefing, decode, encode
from fairtrial.engine.cluster.worker import Worker

_METHODS = ("open", "deliver", "collect", "close")
_STARTING = 600.0  # seconds that a worker may take to start, with a model that it loads


class Processes:
    """Starts workers as processes of this machine."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._links: list[_ProcessLink] = []

    async def __aenter__(self) -> Processes:
        return self

    async def __aexit__(self, *_: object) -> None:
        for link in self._links:
            link.kill()
        await asyncio.gather(*(link.gone() for link in self._links))

    def encode(self, briefing: Briefing) -> bytes:
        try:
            return encode(briefing)
        except Exception as error:
            raise FairtrialError(
                f"the suite cannot be sent to other processes ({error}): give functions by an importable name"
            ) from None

    async def vacancies(self, share: Resources) -> int:
        return self.most - sum(link.alive for link in self._links)

    def start(self, share: Resources) -> _ProcessLink:
        link = _ProcessLink()
        self._links.append(link)
        return link


class _ProcessLink:
    """A worker process."""

    def __init__(self) -> None:
        self._peer = pipes.Peer("fairtrial.engine.cluster.processes:serve", _METHODS)

    @property
    def alive(self) -> bool:
        return self._peer.alive

    async def open(self, briefing: bytes) -> str | None:
        await self._peer.start()
        try:
            async with time_limit(_STARTING):
                problem: str | None = decode(await self._peer.ask("open", briefing))
        except TimeoutError:
            raise WorkerLostError(f"it did not start within {_STARTING:.0f} s") from None
        return problem

    async def deliver(self, orders: bytes) -> None:
        await self._peer.ask("deliver", orders)

    async def collect(self, linger: float) -> bytes:
        return await self._peer.ask("collect", encode(linger))

    async def close(self) -> bytes:
        return await self._peer.ask("close")

    def kill(self) -> None:
        self._peer.kill()

    async def gone(self) -> None:
        await self._peer.gone()


# -- in the worker's process -----------------------------------------------------------------------


def serve() -> None:
    """Serve as a worker until the driver closes the pipe."""
    worker = Worker(pipes.hung_up)

    async def call(method: str, body: bytes) -> bytes:
        if method == "open":
            return encode(await worker.open(body))
        if method == "deliver":
            await worker.deliver(body)
            return b""
        return await (worker.close() if method == "close" else worker.collect(decode(body)))

    pipes.serve(_METHODS, call, worker.close, worker.drop)
