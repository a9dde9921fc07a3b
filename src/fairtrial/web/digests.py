"""What takes long to work out, worked out once, beside everything else, and kept in the store."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from threading import Lock
from typing import Any, TypeVar

import msgspec

from fairtrial.analyse import Run
from fairtrial.store import Store
from fairtrial.store.browsing import stamp
from fairtrial.store.digests import digest, keep_digest

T = TypeVar("T")
_MOST_KNOWN = 200
_FRESH = 5.0  # seconds for which what is known of a run that goes on is good enough
PATIENCE = 0.1  # seconds that a page waits for a number before it is shown without it


class Digests:
    """Numbers about runs. One thread works them out, so that the pages never wait for more than they want to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._under_way: dict[tuple[str, str], Future[Any]] = {}
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="fairtrial-digest")

    def close(self) -> None:
        """Nothing more is worked out."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def about(
        self, name: str, runs: list[Run], kind: type[T], work_out: Callable[[], T], *, wait: float = PATIENCE
    ) -> T | None:
        """What is known under a name of these runs as they are now, or None if that takes longer than `wait`.

        An error that says why there is no such number is raised each time.
        """
        going_on = any(run.status == "running" for run in runs)
        now = f"running/{time.monotonic() // _FRESH}" if going_on else ""
        key = (name, now or "|".join(stamp(self._store, run.record) for run in runs))
        with self._lock:
            found = self._known.get(key)
            future = self._under_way.get(key)
        if found is not None:
            return found  # type: ignore[no-any-return]
        if future is None:
            body = None if going_on else digest(self._store, *key)
            if body is not None:
                return self._remember(key, msgspec.msgpack.decode(body, type=kind))
            future = self._begin(key, runs[0].id, work_out, kept=not going_on)
        try:
            return future.result(wait)  # type: ignore[no-any-return]
        except NotYetError:
            return None

    def _begin(self, key: tuple[str, str], run_id: str, work_out: Callable[[], T], *, kept: bool) -> Future[T]:
        def work() -> T:
            try:
                found = work_out()
                if kept:
                    keep_digest(self._store, key[0], run_id, key[1], msgspec.msgpack.encode(found))
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
