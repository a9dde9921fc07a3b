"""Slow computations, done once in the background: numbers, kept in the store, and orders of cases."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.store import Store
from fairtrial.store.browsing import CaseQuery, ordered_cases, stamp
from fairtrial.store.cache import cached, drop_other_code, keep
from fairtrial.web.compute import ComputeProcess
from fairtrial.web.sources import code_key

T = TypeVar("T")
_MAX_REMEMBERED = 200
_MAX_DRAWN = 20
_MAX_ORDERS = 50  # 8 bytes a case each
_LARGE = 2000  # trials; numbers about more are computed in a separate process
_FRESH = 5.0  # seconds for which numbers about a run in progress are reused
PATIENCE = 0.1  # seconds that a page waits for a number before it is shown without it
LONG = 120.0  # seconds that the later request for that number waits


def patience(params: Mapping[str, str]) -> float:
    """Return how long a request waits: a page asks again with `wait` for the numbers it was shown without."""
    return LONG if params.get("wait") else PATIENCE


class NumberCache:
    """Numbers about runs, computed by one background thread so that pages never wait longer than they choose to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._remembered: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._pending: dict[tuple[str, str], Future[Any]] = {}
        self._drawn: OrderedDict[str, tuple[Any, Any]] = OrderedDict()
        self._codes: set[str] = set()  # whose numbers are in use
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="fairtrial-digest")
        self._process = ComputeProcess(store.address)

    def close(self) -> None:
        """Stop all computations."""
        self._process.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def get(
        self, name: str, runs: Sequence[StoredRun], kind: type[T], compute: Callable[..., T], *args: Any,
        wait: float = PATIENCE,
    ) -> T | None:  # fmt: skip
        """Return a named number about these runs as they are now, or None if computing it takes longer than `wait`.

        `compute` is a module-level function that takes the runs and the arguments. If it raises a FairtrialError, every
        call raises it. A stored number is used only if the same code computed it.
        """
        code = code_key(compute.__module__)
        running = any(run.status == "running" for run in runs)
        moment = f"running/{time.monotonic() // _FRESH}" if running else ""
        key = (name, moment or "|".join([code, *(stamp(self._store, run.record) for run in runs)]))
        with self._lock:
            value = self._remembered.get(key)
            future = self._pending.get(key)
        if value is not None:
            return value  # type: ignore[no-any-return]
        if future is None:
            body = None if running else cached(self._store, *key)
            if body is not None:
                with suppress(msgspec.MsgspecError):  # unreadable entries are computed again
                    return self._remember(key, msgspec.msgpack.decode(body, type=kind))
            future = self._start(key, code, runs, kind, compute, args)
        if wait <= PATIENCE and _is_large(runs):
            wait = 0.0  # it would not be ready in time
        try:
            return future.result(wait)  # type: ignore[no-any-return]
        except NotYetError:
            return None

    def drawn(self, name: str, value: Any, draw: Callable[[], T]) -> T:
        """Return what is drawn from a number, again only if it is another number than the last time."""
        with self._lock:
            known, made = self._drawn.get(name, (None, None))
        if known is value:
            return made  # type: ignore[no-any-return]
        made = draw()
        with self._lock:
            self._drawn[name] = (value, made)
            while len(self._drawn) > _MAX_DRAWN:
                self._drawn.popitem(last=False)
        return made

    def constant(self, name: str, compute: Callable[[], T]) -> T:
        """Return a value that never changes, computed when first asked for."""
        key = (name, "")
        with self._lock:
            if key in self._remembered:
                return self._remembered[key]  # type: ignore[no-any-return]
        return self._remember(key, compute())

    def _start(
        self,
        key: tuple[str, str],
        code: str,
        runs: Sequence[StoredRun],
        kind: type[T],
        compute: Callable[..., T],
        args: tuple[Any, ...],
    ) -> Future[T]:
        def work() -> T:
            try:
                if _is_large(runs):
                    packed = self._process.compute(compute, code, [run.id for run in runs], args)
                    value = msgspec.msgpack.decode(packed, type=kind)
                else:
                    value = compute(runs, *args)
                    packed = msgspec.msgpack.encode(value)
                if not any(run.status == "running" for run in runs):
                    self._keep(key, code, runs[0].id, packed)
                return self._remember(key, value)
            finally:
                with self._lock:
                    self._pending.pop(key, None)

        with self._lock:
            if key not in self._pending:
                self._pending[key] = self._pool.submit(work)
            return self._pending[key]

    def _keep(self, key: tuple[str, str], code: str, run_id: str, packed: bytes) -> None:
        if code not in self._codes:
            self._codes.add(code)
            drop_other_code(self._store, self._codes)
        keep(self._store, key[0], run_id, key[1], packed)

    def _remember(self, key: tuple[str, str], value: T) -> T:
        with self._lock:
            self._remembered[key] = value
            while len(self._remembered) > _MAX_REMEMBERED:
                self._remembered.popitem(last=False)
        return value


def _is_large(runs: Sequence[StoredRun]) -> bool:
    return sum(run.plan.case_count * len(run.plan_arms) for run in runs) > _LARGE


class CaseOrders:
    """The cases of a run, filtered and in the order a page asked for; those of finished runs are remembered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._orders: OrderedDict[Any, Future[Sequence[int]]] = OrderedDict()
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="fairtrial-orders")

    def close(self) -> None:
        """Forget what is no longer waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def get(self, run: Run, query: CaseQuery, *, wait: float = PATIENCE) -> Sequence[int] | None:
        """Return the positions of the matching cases in order, or None if that takes longer than `wait`."""
        if query == CaseQuery():
            return range(run.plan.case_count)
        if run.status == "running":
            return ordered_cases(self._store, run.record, query)
        key = (run.id, stamp(self._store, run.record), query)
        with self._lock:
            order = self._orders.get(key)
            if order is None or (order.done() and order.exception() is not None):
                order = self._orders[key] = self._pool.submit(ordered_cases, self._store, run.record, query)
                while len(self._orders) > _MAX_ORDERS:
                    self._orders.popitem(last=False)
        try:
            return order.result(wait)
        except NotYetError:
            return None
