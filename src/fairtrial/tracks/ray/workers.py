"""Workers as actors of Ray: on this machine, or on the machines of a cluster."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Resources
from fairtrial.engine.cluster.link import WorkerLostError
from fairtrial.engine.cluster.messages import Briefing
from fairtrial.engine.cluster.worker import Worker

_OBJECT_STORE = 200 * 2**20  # bytes, on a cluster of our own: nothing large is kept there
_NAMES = {"cpu": "CPU", "gpu": "GPU", "memory": "memory"}  # Ray's names of resources; all others are its own


class RayWorkers:
    """Starts workers on a Ray cluster: the one that is named, the one that this process is part of, or a new one."""

    def __init__(self, address: str = "", most: int | None = None) -> None:
        self._address, self._limit = address, most
        self._ours = False
        self._total: dict[str, float] = {}
        # Ray's calls block, and what it starts ends with the thread that started it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fairtrial-ray")

    @staticmethod
    def check(address: str) -> None:
        """Raise unless workers can be started at this address."""
        if address.startswith("//"):
            raise FairtrialError(
                "Ray's client mode (ray://) is not supported: use ray:HOST:PORT on a machine of the cluster, "
                "or start the run there with `ray job submit`"
            )

    async def __aenter__(self) -> RayWorkers:
        await self._do(self._connect)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._ours:
            await self._do(_ray().shutdown)
        self._thread.shutdown(wait=False)

    async def _do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _connect(self) -> None:
        ray = _ray()
        if not ray.is_initialized():
            self._start(ray)
            self._ours = True
        self._total = ray.cluster_resources()

    def _start(self, ray: ModuleType) -> None:
        logging.getLogger("ray").setLevel(logging.ERROR)
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        try:
            ray.init(address=self._address or "auto", **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            if self._address:
                raise FairtrialError(f"no Ray cluster answers at {self._address} ({_first_line(error)})") from None
            ray.init(address="local", include_dashboard=False, object_store_memory=_OBJECT_STORE, **quiet)

    @property
    def most(self) -> int:
        """One worker for each processor of the cluster, unless told otherwise."""
        return self._limit or max(1, int(self._total.get("CPU", 1)))

    def encode(self, briefing: Briefing) -> bytes:
        """Encode a briefing; functions that were given in Python go along by value."""
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

    async def vacancies(self, share: Resources) -> int:
        """Return how many more workers the cluster has room for."""
        free = await self._do(_ray().available_resources)
        return min(int(free.get(_NAMES.get(name, name), 0.0) / amount) for name, amount in share.items())

    def start(self, share: Resources) -> _RayLink:
        """Start a worker; it begins when the cluster has room for it."""
        own = {name: amount for name, amount in share.items() if name not in _NAMES}
        actor = _ray().remote(Worker).options(
            num_cpus=share.get("cpu", 1.0),
            num_gpus=share.get("gpu", 0.0),
            memory=int(share["memory"]) if "memory" in share else None,
            resources=own or None,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=1000,
        )  # fmt: skip
        return _RayLink(actor.remote(), self._thread)


class _RayLink:
    """A worker that is an actor."""

    def __init__(self, actor: Any, thread: ThreadPoolExecutor) -> None:
        self._actor, self._thread = actor, thread

    async def open(self, briefing: bytes) -> str | None:
        # Not an argument of the actor itself, because Ray keeps those in its own store.
        problem: str | None = await _result(self._actor.open.remote(briefing))
        return problem

    async def deliver(self, orders: bytes) -> None:
        await _result(self._actor.deliver.remote(orders))

    async def collect(self, linger: float) -> bytes:
        report: bytes = await _result(self._actor.collect.remote(linger))
        return report

    async def close(self) -> bytes:
        report: bytes = await _result(self._actor.close.remote())
        return report

    def kill(self) -> None:
        self._thread.submit(_ray().kill, self._actor)


async def _result(reference: Any) -> Any:
    from ray import exceptions

    try:
        return await reference
    except exceptions.RayTaskError:
        raise
    except exceptions.RayError as error:
        raise WorkerLostError(_first_line(error)) from None


def _ray() -> ModuleType:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a run tells nobody about itself
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise FairtrialError("--engine ray needs Ray: pip install 'fairtrial[ray]'") from None


def _own_modules(functions: Any) -> list[ModuleType]:
    """Return the modules of functions that other machines may not have: all that are not installed."""
    names = {getattr(function, "__module__", None) or type(function).__module__ for function in functions}
    modules = [sys.modules[name] for name in names if name in sys.modules and name != "__main__"]
    return [module for module in modules if "site-packages" not in (getattr(module, "__file__", None) or "")]


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
