"""What a watcher can see and do of a session, wherever its trials are carried out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from fairtrial.core.listening import Listener
from fairtrial.core.trial import Trial
from fairtrial.engine.job import Job
from fairtrial.engine.progress import Progress


class Session(Protocol):
    """A session of work on a run, as seen by a watcher."""

    job: Job
    progress: Progress
    listen: Callable[[Trial], Listener] | None  # set by a watcher that follows answers as they stream in

    def interrupt(self) -> None:
        """Stop now: cancel calls in flight and keep everything already answered."""


Watch = Callable[[Session], AbstractAsyncContextManager[None]]
