"""Where trials are carried out: in this process, in several of this machine, or on a Ray cluster."""

from __future__ import annotations

from fairtrial.core.errors import FairtrialError
from fairtrial.engine.cluster.link import Backend
from fairtrial.engine.job import Where


def where_of(engine: str | None, workers: int | None = None) -> Where:
    """Check what a user wants; raise unless this is an engine."""
    engine = engine or "local"
    if engine not in ("local", "ray") and not (engine.startswith("ray:") and len(engine) > len("ray:")):
        raise FairtrialError(f"unknown engine `{engine}`: choose local, ray, or ray:ADDRESS")
    if engine.startswith("ray://"):
        raise FairtrialError(
            "Ray's client mode (ray://) is not supported: use ray:HOST:PORT on a machine of the cluster, "
            "or start the run there with `ray job submit`"
        )
    if workers is not None and workers < 1:
        raise FairtrialError(f"a run needs at least one worker, not {workers}")
    return Where(engine, workers)


def backend_of(where: Where) -> Backend | None:
    """Return where workers run; None if trials are carried out in this process."""
    if where.engine == "local":
        if where.workers is None or where.workers == 1:
            return None
        from fairtrial.engine.cluster.processes import Processes

        return Processes(where.workers)
    from fairtrial.tracks.ray.workers import RayWorkers

    return RayWorkers(where.engine.partition(":")[2], where.workers)
