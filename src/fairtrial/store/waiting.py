"""Wait, for a limited time, for a database that cannot be reached or is locked."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import ParamSpec, TypeVar

from fairtrial.core.errors import StoreBusyError

P = ParamSpec("P")
T = TypeVar("T")
LONGEST = 600.0  # seconds that a run waits for its store
PAUSE = 0.2  # seconds between two attempts


class Waiting:
    """Calls functions of the store again until it can be reached; `stop` ends that, as after Ctrl-C."""

    def __init__(self, longest: float = LONGEST, tell: Callable[[str], None] = lambda _: None) -> None:
        """`tell` is called with why the store cannot be used for now, and with "" once it can."""
        self._longest, self.tell, self._stopped = longest, tell, Event()

    def stop(self) -> None:
        """Wait no longer: every error is raised at once."""
        self._stopped.set()

    def call(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call a function whose work is one reading or one transaction, again if the database was out of reach."""
        deadline = time.monotonic() + self._longest
        while True:
            try:
                result = work(*args, **options)
            except StoreBusyError as error:
                if time.monotonic() > deadline or self._stopped.is_set():
                    raise
                self.tell(error.reason)
                self._stopped.wait(PAUSE)
            else:
                self.tell("")
                return result
