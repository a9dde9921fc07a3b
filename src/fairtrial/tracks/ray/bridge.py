"""The process that talks to Ray: Ray blocks, writes to the terminal, and ends its process when the head is gone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec

from fairtrial.core.experiment import Resources
from fairtrial.engine.cluster import pipes
from fairtrial.engine.cluster.link import WorkerLostError
from fairtrial.engine.cluster.messages import decode, encode
from fairtrial.engine.cluster.worker import Worker

METHODS = ("connect", "vacancies", "open", "deliver", "collect", "close", "kill")
_OBJECT_STORE = 200 * 2**20  # bytes, on a cluster of our own: nothing large is kept there
_NAMES = {"cpu": "CPU", "gpu": "GPU", "memory": "memory"}  # Ray's names of resources; all others are its own
_TRYING = 60.0  # seconds in which a cluster that has just been started may begin to answer
LOCAL, AUTO = "local", "auto"


class Connected(msgspec.Struct, frozen=True):
    """What became of an attempt to connect."""

    address: str = ""
    processors: int = 1
    problem: str = ""


class Call(msgspec.Struct, frozen=True):
    """A call of a worker's method; `number` says which worker."""

    number: int
    body: Any = None
    share: Resources = {}


class Bridge:
    """Passes on what the driver and its actors say to each other."""

    def __init__(self) -> None:
        # Ray's calls block, and what it starts ends with the thread that started it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fairtrial-ray")
        self._actors: dict[int, Any] = {}
        self._killed: set[int] = set()

    async def call(self, method: str, body: bytes) -> bytes:
        """Do what the driver asks for."""
        reply = await getattr(self, f"_{method}")(decode(body))
        return reply if isinstance(reply, bytes) else encode(reply)

    async def _do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        from ray.exceptions import RayError

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
        except (RayError, OSError, RuntimeError) as error:
            raise WorkerLostError(_first_line(error)) from None

    async def _connect(self, options: dict[str, Any]) -> Connected:
        connected: Connected = await self._do(partial(connect, **options))
        return connected

    async def _vacancies(self, share: Resources) -> int | None:
        counted: int | None = await self._do(vacancies, share)
        return counted

    async def _open(self, call: Call) -> Any:
        self._actors[call.number] = await self._do(start, call.share)
        if call.number in self._killed:
            await self._kill(call)
        # Not an argument of the actor itself, because Ray keeps those in its own store.
        return await _result(self._actor(call).open.remote(call.body))

    async def _deliver(self, call: Call) -> Any:
        return await _result(self._actor(call).deliver.remote(call.body))

    async def _collect(self, call: Call) -> Any:
        return await _result(self._actor(call).collect.remote(call.body))

    async def _close(self, call: Call) -> Any:
        return await _result(self._actor(call).close.remote())

    async def _kill(self, call: Call) -> None:
        import ray

        self._killed.add(call.number)
        actor = self._actors.pop(call.number, None)
        if actor is not None:
            await self._do(ray.kill, actor)

    def _actor(self, call: Call) -> Any:
        if call.number in self._killed:
            raise WorkerLostError("it has been killed")
        return self._actors[call.number]


def serve() -> None:
    """Serve the driver until it closes the pipe: Ray then ends the workers, and a cluster that was started here."""
    pipes.serve(METHODS, Bridge().call)


# -- what blocks -----------------------------------------------------------------------------------


def connect(address: str, runtime_env: dict[str, Any] | None = None) -> Connected:
    """Connect to a cluster, or start one on this machine."""
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "runtime_env": runtime_env}
    if address == LOCAL:
        quiet |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE}
    ends = time.monotonic() + (0 if address == AUTO else _TRYING)
    while not ray.is_initialized():
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            if time.monotonic() > ends:
                return Connected(problem=_first_line(error))
            time.sleep(1)
    processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
    return Connected(ray.get_runtime_context().gcs_address, processors)


def vacancies(share: Resources) -> int | None:
    """Return how many more workers would start at once; None if no machine is large enough for one."""
    import ray

    wanted = {_NAMES.get(name, name): amount for name, amount in share.items() if amount}
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(machine.get(name, 0.0) >= amount for name, amount in wanted.items()) for machine in machines):
        return None
    free = ray.available_resources()
    return min(int(free.get(name, 0.0) / amount) for name, amount in wanted.items())


def start(share: Resources) -> Any:
    """Start a worker; it begins when the cluster has room for it."""
    import ray

    own = {name: amount for name, amount in share.items() if name not in _NAMES}
    actor = ray.remote(Worker).options(
        num_cpus=share.get("cpu", 1.0),
        num_gpus=share.get("gpu", 0.0),
        memory=int(share["memory"]) if "memory" in share else None,
        resources=own or None,
        max_restarts=0,
        max_task_retries=0,
        max_concurrency=1000,
    )  # fmt: skip
    return actor.remote()


async def _result(reference: Any) -> Any:
    from ray import exceptions

    try:
        return await reference
    except exceptions.RayTaskError:
        raise
    except exceptions.RayError as error:
        raise WorkerLostError(_first_line(error)) from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
