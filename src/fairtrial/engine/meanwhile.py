"""What a run imports while it waits for its first answers: numpy, above all, takes as long as an answer."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from importlib import import_module

from fairtrial.engine.feed import CaseFeed
from fairtrial.engine.job import Job


def begin_to_import(job: Job, feed: CaseFeed) -> asyncio.Task[None]:
    """Import at once what decides when to stop: a thread that imports the same meanwhile would show half of it."""
    if job.settings.stop is not None:
        import_module("fairtrial.engine.planned_looks")
    return asyncio.create_task(_import_analysis(feed))


async def _import_analysis(feed: CaseFeed) -> None:
    """Import what only analysis needs, while the first answers are pending and not before."""
    with suppress(Exception):  # raised where the cases are asked
        await feed.wait_for(sys.maxsize)
    await asyncio.to_thread(import_module, "fairtrial.analyse.summary")
