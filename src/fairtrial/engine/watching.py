"""What a watcher may see of a session and do to it, wherever the session's trials are carried out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from fairtrial.core.listening import Listener
from fairtrial.core.trial import Trial
from fairtrial.engine.job import Job
from fairtrial.engine.progress import Progress


class Session(Protocol):
    """A session of work on a run, as its watcher sees it."""

    job: Job
    progress: Progress
    listen: Callable[[Trial], Listener] | None  # set by a watcher that wants to follow answers as they are given

    def interrupt(self) -> None:
        """Stop now: calls under way are given up, everything answered is kept."""


Watch = Callable[[Session], AbstractAsyncContextManager[None]]
