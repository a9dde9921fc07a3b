"""Running a suite once or several times in sequence, as a series."""

from __future__ import annotations

from collections.abc import Callable

from fairtrial.analyse.run import Run
from fairtrial.config import Suite
from fairtrial.core.amounts import check_runs
from fairtrial.core.errors import FairtrialError
from fairtrial.core.ids import new_id
from fairtrial.engine.job import HERE, Where
from fairtrial.engine.watching import Watch
from fairtrial.pipeline import SeriesPlan, arun
from fairtrial.store import Store

Part = tuple[int, int]  # the number of a run in its series, and the length of the series


def check_series(suite: Suite, runs: int) -> None:
    """Raise if a suite cannot be run this many times as a series."""
    check_runs(runs)
    if suite.settings.cache:
        raise FairtrialError("the runs of a series must be independent: turn `cache` off")
    if suite.settings.stop:
        raise FairtrialError("the runs of a series must be complete: leave out `stop_when` and `looks`")


async def arun_series(
    suite: Suite,
    runs: int,
    *,
    store: Store,
    watch: Callable[[Part], Watch | None] | None = None,
    after: Callable[[Part, Run], None] | None = None,
    where: Where = HERE,
) -> list[Run]:
    """Run a suite several times; an interruption ends the series, and `resume` continues it."""
    check_series(suite, runs)
    series = SeriesPlan(new_id(), runs)
    finished: list[Run] = []
    while len(finished) < runs:
        part = (len(finished) + 1, runs)
        run = await arun(suite, store=store, series=series, watch=watch(part) if watch else None, where=where)
        finished.append(run)
        if after:
            after(part, finished[-1])
        if finished[-1].status == "interrupted":
            break
    return finished
