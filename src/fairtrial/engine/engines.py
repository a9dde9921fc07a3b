"""Where trials are carried out: in this process, in several of this machine, or on a Ray cluster."""

from __future__ import annotations

import os

from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.engine.cluster.link import Backend
from fairtrial.engine.job import Where
from fairtrial.text.printable import counted

_MOST_WORKERS, _PER_PROCESSOR = 64, 4  # processes of this machine: at most the larger of these two limits


def where_of(engine: str | None, workers: int | None = None) -> Where:
    """Check what a user wants; raise unless this is an engine."""
    engine = engine or "local"
    name, colon, address = engine.partition(":")
    if engine != "local":
        if name not in registry.names("engines") or (colon and not address):
            raise FairtrialError(f"unknown engine `{engine}`: choose local, ray, or ray:ADDRESS")
        registry.load("engines", name).check(address)
    if workers is not None and workers < 1:
        raise FairtrialError(f"a run needs at least one worker, not {workers}")
    if engine == "local" and workers is not None:
        _check_room(workers)
    return Where(engine, workers)


def _check_room(workers: int) -> None:
    """Refuse more processes than this machine can start and still work."""
    processors = os.cpu_count() or 1
    most = max(_MOST_WORKERS, _PER_PROCESSOR * processors)
    if workers > most:
        raise FairtrialError(
            f"{workers:,} workers are too many processes for this machine, which has "
            f"{counted(processors, 'processor')}: choose at most {most}, or --concurrency for more calls at a time"
        )


def backend_of(where: Where) -> Backend | None:
    """Return where workers run; None if trials are carried out in this process."""
    if where.engine == "local":
        if where.workers is None or where.workers == 1:
            return None
        from fairtrial.engine.cluster.processes import Processes  # only runs with workers need it

        return Processes(where.workers)
    name, _, address = where.engine.partition(":")
    backend: Backend = registry.load("engines", name)(address, where.workers)
    return backend
