"""Workers as actors of Ray: on this machine, or on the machines of a cluster."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from types import ModuleType
from typing import Any

from fairtrial.core.errors import FairtrialError, WorkersGoneError
from fairtrial.core.experiment import Resources
from fairtrial.core.time_limit import time_limit
from fairtrial.engine.cluster.link import BackendAwayError, WorkerLostError
from fairtrial.engine.cluster.messages import Briefing, decode, encode
from fairtrial.engine.cluster.pipes import Peer
from fairtrial.tracks.ray.bridge import AUTO, LOCAL, METHODS, Call, Connected

_KNOCKING = 5.0  # seconds in which a machine says whether anything listens at an address
_CONNECTING = 120.0  # seconds in which a cluster that does listen lets us in, or a new one starts
_ANSWERING = 10.0  # seconds in which it says how much room there is
_ENDING = 5.0  # seconds that Ray has to end by itself


class RayWorkers:
    """Starts workers on a Ray cluster: the one that is named, the one that this process is part of, or a new one."""

    def __init__(self, address: str = "", most: int | None = None) -> None:
        self._address, self._limit = address, most
        self._runtime_env: dict[str, Any] | None = None
        self._known = Connected()
        self._peer: Peer | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._numbers = count()

    @staticmethod
    def check(address: str) -> None:
        """Raise unless workers can be started at this address."""
        if address.startswith("//"):
            raise FairtrialError(
                "Ray's client mode (ray://) is not supported: use ray:HOST:PORT on a machine of the cluster, "
                "or start the run there with `ray job submit`"
            )

    async def __aenter__(self) -> RayWorkers:
        if sys.modules.get("ray", ...) is None or find_spec("ray") is None:
            raise FairtrialError("--engine ray needs Ray: pip install 'fairtrial[ray]'")
        self._address = self._address or self._of_this_process()
        try:
            await self._connect()
        except BackendAwayError as error:
            raise WorkersGoneError(str(error)) from None
        return self

    def _of_this_process(self) -> str:
        """Return the address of the cluster that the caller of the library has connected to, if any."""
        ray: Any = sys.modules.get("ray")
        if ray is None or not ray.is_initialized():
            return ""
        context = ray.get_runtime_context()
        self._runtime_env = dict(context.runtime_env) or None
        return str(context.gcs_address)

    async def __aexit__(self, *_: object) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._peer is not None:
            await self._end(self._peer)

    @staticmethod
    async def _end(peer: Peer) -> None:
        """End the process that talks to Ray, by itself if it can: Ray then knows at once that its workers must end."""
        peer.hang_up()
        with suppress(TimeoutError):
            async with time_limit(_ENDING):
                await peer.gone()
        peer.kill()
        await peer.gone()

    async def _connect(self) -> None:
        if self._address:
            await _knock(self._address)
            return await self._enter(self._address)
        try:
            await self._enter(AUTO)
        except BackendAwayError:  # this machine is part of no cluster, or of one that is no more
            await self._enter(LOCAL)

    async def _enter(self, address: str) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a run tells nobody about itself
        name = self._address or "this machine"
        peer = Peer("fairtrial.tracks.ray.bridge:serve", METHODS, quiet=True)
        options = {"address": address, "runtime_env": self._runtime_env}
        try:
            await peer.start()
            async with time_limit(_CONNECTING):
                known: Connected = decode(await peer.ask("connect", encode(options)))
            if known.problem:
                token = (
                    "" if os.environ.get("RAY_AUTH_MODE") else "; one that asks for a token needs RAY_AUTH_MODE=token"
                )
                raise BackendAwayError(f"no Ray cluster answers at {name} ({known.problem}{token})")
        except BaseException as error:
            peer.kill()
            await peer.gone()
            if isinstance(error, (TimeoutError, WorkerLostError)):
                raise BackendAwayError(f"no Ray cluster answers at {name}") from None
            raise
        if address == AUTO:
            self._address = known.address
        self._known, self._peer = known, peer

    @property
    def most(self) -> int:
        """One worker for each processor of the cluster, unless told otherwise."""
        return self._limit or self._known.processors

    def encode(self, briefing: Briefing) -> bytes:
        """Encode a briefing; functions that were given in Python go along by value."""
        if not briefing.job.functions:
            return encode(briefing)
        from ray import cloudpickle as untyped

        cloudpickle: Any = untyped
        modules = _own_modules(briefing.job.functions.values())
        for module in modules:
            cloudpickle.register_pickle_by_value(module)
        try:
            encoded: bytes = cloudpickle.dumps(briefing)
            return encoded
        except Exception as error:
            raise FairtrialError(
                f"a function of the suite cannot be sent to other machines ({_first_line(error)}): "
                "put it into a module that is installed there, or use --engine local"
            ) from None
        finally:
            for module in modules:
                cloudpickle.unregister_pickle_by_value(module)

    async def vacancies(self, share: Resources) -> int | None:
        """Ask the cluster; if Ray has given it up, try to connect again, for its head may have been started again."""
        if self._peer is None or not self._peer.alive:
            self._reconnect()
            raise self._away()
        try:
            async with time_limit(_ANSWERING):
                room: int | None = decode(await self._peer.ask("vacancies", encode(dict(share))))
                return room
        except (WorkerLostError, TimeoutError):
            raise self._away() from None

    def _away(self) -> BackendAwayError:
        return BackendAwayError(f"the Ray cluster at {self._address or self._known.address} does not answer")

    def _reconnect(self) -> None:
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.create_task(self._try_to_connect())

    async def _try_to_connect(self) -> None:
        with suppress(BackendAwayError):
            await self._connect()

    def start(self, share: Resources) -> _RayLink:
        """Start a worker; it begins when the cluster has room for it."""
        assert self._peer is not None
        return _RayLink(self._peer, next(self._numbers), share)


class _RayLink:
    """A worker that is an actor."""

    def __init__(self, peer: Peer, number: int, share: Resources) -> None:
        self._peer, self._number, self._share = peer, number, share

    async def _call(self, method: str, body: Any = None) -> bytes:
        return await self._peer.ask(method, encode(Call(self._number, body, self._share)))

    async def open(self, briefing: bytes) -> str | None:
        problem: str | None = decode(await self._call("open", briefing))
        return problem

    async def deliver(self, orders: bytes) -> None:
        await self._call("deliver", orders)

    async def collect(self, linger: float) -> bytes:
        return await self._call("collect", linger)

    async def close(self) -> bytes:
        return await self._call("close")

    def kill(self) -> None:
        self._peer.tell("kill", encode(Call(self._number)))


async def _knock(address: str) -> None:
    """Raise unless something listens there: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise FairtrialError(f"`{address}` cannot be the address of a Ray cluster: use ray:HOST:PORT")
    try:
        async with asyncio.timeout(_KNOCKING):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, OverflowError, UnicodeError) as error:  # TimeoutError is an OSError
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else _first_line(error)
        raise BackendAwayError(f"no Ray cluster answers at {address} ({reason})") from None
    writer.close()


def _own_modules(functions: Any) -> list[ModuleType]:
    """Return the modules of functions that other machines may not have: all that are not installed."""
    names = {getattr(function, "__module__", None) or type(function).__module__ for function in functions}
    modules = [sys.modules[name] for name in names if name in sys.modules and name != "__main__"]
    return [module for module in modules if "site-packages" not in (getattr(module, "__file__", None) or "")]


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
