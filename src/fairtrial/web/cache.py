"""What takes long to work out, worked out once, beside everything else, and kept in the store."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from contextlib import suppress
from importlib.metadata import version
from threading import Lock
from typing import Any, TypeVar

import msgspec

from fairtrial.analyse import Run
from fairtrial.store import Store
from fairtrial.store.browsing import stamp
from fairtrial.store.cache import cached, keep
from fairtrial.web.compute import ComputeProcess

T = TypeVar("T")
_VERSION = f"{version('fairtrial')}/3"  # another way to work something out makes another number: count on
_MOST_KNOWN = 200
_LARGE = 2000  # trials: what takes longer is worked out in a process of its own
_FRESH = 5.0  # seconds for which what is known of a run that goes on is good enough
PATIENCE = 0.1  # seconds that a page waits for a number before it is shown without it
LONG = 120.0  # and whoever comes back for it


def patience(asked: Mapping[str, str]) -> float:
    """How long an address wants to wait: a page comes back with `wait` for what it was shown without."""
    return LONG if asked.get("wait") else PATIENCE


class NumberCache:
    """Numbers about runs. One thread works them out, so that the pages never wait for more than they want to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._under_way: dict[tuple[str, str], Future[Any]] = {}
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="fairtrial-digest")
        self._computer = ComputeProcess(store.path)

    def close(self) -> None:
        """Nothing more is worked out."""
        self._computer.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def about(
        self, name: str, runs: Sequence[Run], kind: type[T], work_out: Callable[..., T], *args: Any,
        wait: float = PATIENCE,
    ) -> T | None:  # fmt: skip
        """What is known under a name of these runs as they are now, or None if that takes longer than `wait`.

        `work_out` is a function of a module, of the runs and the arguments. An error that says why there is no such
        number is raised each time.
        """
        going_on = any(run.status == "running" for run in runs)
        now = f"running/{time.monotonic() // _FRESH}" if going_on else ""
        key = (name, now or "|".join([_VERSION, *(stamp(self._store, run.record) for run in runs)]))
        with self._lock:
            found = self._known.get(key)
            future = self._under_way.get(key)
        if found is not None:
            return found  # type: ignore[no-any-return]
        if future is None:
            body = None if going_on else cached(self._store, *key)
            if body is not None:
                with suppress(msgspec.MsgspecError):  # what cannot be read is worked out anew
                    return self._remember(key, msgspec.msgpack.decode(body, type=kind))
            future = self._begin(key, runs, kind, work_out, args)
        if wait <= PATIENCE and _is_large(runs):
            wait = 0.0  # it will not be there in time
        try:
            return future.result(wait)  # type: ignore[no-any-return]
        except NotYetError:
            return None

    def _begin(
        self,
        key: tuple[str, str],
        runs: Sequence[Run],
        kind: type[T],
        work_out: Callable[..., T],
        args: tuple[Any, ...],
    ) -> Future[T]:
        def work() -> T:
            try:
                if _is_large(runs):
                    packed = self._computer.work_out(work_out, [run.id for run in runs], args)
                    found = msgspec.msgpack.decode(packed, type=kind)
                else:
                    found = work_out(runs, *args)
                    packed = msgspec.msgpack.encode(found)
                if not any(run.status == "running" for run in runs):
                    keep(self._store, key[0], runs[0].id, key[1], packed)
                return self._remember(key, found)
            finally:
                with self._lock:
                    self._under_way.pop(key, None)

        with self._lock:
            if key not in self._under_way:
                self._under_way[key] = self._pool.submit(work)
            return self._under_way[key]

    def _remember(self, key: tuple[str, str], found: T) -> T:
        with self._lock:
            self._known[key] = found
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        return found


def _is_large(runs: Sequence[Run]) -> bool:
    return sum(run.plan.case_count * len(run.plan_arms) for run in runs) > _LARGE
