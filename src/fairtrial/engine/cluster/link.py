"""How the driver reaches workers: in processes of this machine, or on a cluster."""

from __future__ import annotations

from typing import Protocol

from fairtrial.core.experiment import Resources
from fairtrial.engine.cluster.messages import Briefing


class WorkerLostError(Exception):
    """The process of a worker is gone, or its machine."""


class BackendAwayError(Exception):
    """The cluster does not answer for now; the text says which one."""


class Link(Protocol):
    """The connection to one worker. Every method raises WorkerLostError if the worker is gone."""

    async def open(self, briefing: bytes) -> str | None:
        """Start the worker, which may take until the cluster has room; return why it cannot work, or None."""

    async def deliver(self, orders: bytes) -> None:
        """Send a batch of orders."""

    async def collect(self, linger: float) -> bytes:
        """Return the next batch of reports."""

    async def close(self) -> bytes:
        """Have the worker cancel what is left, and return its last report."""

    def kill(self) -> None:
        """End the worker now."""


class Backend(Protocol):
    """Where workers run."""

    async def __aenter__(self) -> Backend:
        """Connect."""

    async def __aexit__(self, *_: object) -> None:
        """Disconnect; all workers are gone afterwards."""

    @property
    def most(self) -> int:
        """The highest useful number of workers, as far as is known."""

    def encode(self, briefing: Briefing) -> bytes:
        """Encode a briefing, with functions that were given in Python; raise if that is impossible."""

    async def vacancies(self, share: Resources) -> int | None:
        """Return how many more workers with such a share of a machine could start at once.

        None if no machine that is there could take one, even if it were idle. Raises BackendAwayError if the
        cluster does not answer.
        """

    def start(self, share: Resources) -> Link:
        """Start a worker."""
