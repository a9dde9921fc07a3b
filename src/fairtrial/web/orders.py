"""The cases of a run, filtered and in the order a page asked for; what takes long is computed in the background."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from threading import Lock
from typing import Any

from fairtrial.analyse.run import Run
from fairtrial.store import Store
from fairtrial.store.browsing import CaseQuery, ordered_cases, stamp
from fairtrial.web.cache import PATIENCE

_MAX_ORDERS = 50  # 8 bytes a case each


class CaseOrders:
    """Orders of cases; those of finished runs are remembered."""

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
