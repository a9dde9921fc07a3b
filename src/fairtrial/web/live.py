"""Runs in progress: counters and grid cells, streamed as they change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from fairtrial.analyse.run import Run
from fairtrial.core.money import total
from fairtrial.engine.progress import Progress
from fairtrial.store import browsing, totals
from fairtrial.web.grid import is_position
from fairtrial.web.site import Site, dollars
from fairtrial.web.tasks import Task

INTERVAL = 0.4  # seconds between two updates of a run of this server
INTERVAL_ELSEWHERE = 2.0  # and of one in another process, which needs queries to the store
_MAX_CASES = 100
_TAIL = 60  # characters of an answer that are shown while it is written


class Live:
    """Event streams and task pages."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/runs/{run}/events", self._run_events),
            Route("/tasks/{task}", self._task),
            Route("/tasks/{task}/state", self._task_state),
        ]

    def _task(self, request: Request) -> Response:
        task = self._site.tasks.find(request.path_params["task"])
        return self._site.page(request, "task.html.j2", 200 if task else 404, task=task)

    def _task_state(self, request: Request) -> Response:
        task = self._site.tasks.find(request.path_params["task"])
        if task is None:
            return JSONResponse(
                {"ended": True, "error": "", "run": None, "address": "/runs", "done": 0, "total": 0}, 404
            )
        state = {"ended": task.ended.is_set(), "error": task.error, "run": task.run_id, "address": task.address}
        counts = {"done": task.done, "total": task.total, "seconds": task.seconds}
        return JSONResponse({**state, **counts})

    async def _run_events(self, request: Request) -> Response:
        run_id = request.path_params["run"]
        positions = request.query_params.getlist("case")
        cases = [int(case) for case in positions if is_position(case)][:_MAX_CASES]
        await asyncio.to_thread(self._site.run, run_id)  # reports an unknown run before the stream begins
        return event_stream(self._stream(run_id, cases))

    async def _stream(self, run_id: str, cases: list[int]) -> AsyncIterator[bytes]:
        before: dict[str, Any] = {}
        shown: dict[str, Any] = {}
        yield b"retry: 1000\n\n"
        while True:
            task = self._site.tasks.of_run(run_id)
            state = await asyncio.to_thread(self._state, run_id, task, cases)
            cells = {key: cell for key, cell in state.pop("cells").items() if shown.get(key) != cell}
            shown |= cells
            if state != before or cells:
                yield b"data: " + msgspec.json.encode({**state, "cells": cells}) + b"\n\n"
                before = state
            else:
                yield b": still here\n\n"
            if state["status"] != "running":
                return
            await asyncio.sleep(INTERVAL if task else INTERVAL_ELSEWHERE)

    def _state(self, run_id: str, task: Task | None, cases: list[int]) -> dict[str, Any]:
        run = self._site.run(run_id)
        return {
            "status": run.status,
            **progress_of(self._site, run, task),
            "cells": _cells(run, task, cases),
        }


def event_stream(events: AsyncIterator[bytes]) -> Response:
    """Return server-sent events that proxies must neither cache nor buffer."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def progress_of(site: Site, run: Run, task: Task | None = None) -> dict[str, Any]:
    """Return the progress of a run: from its own counters, or from the store if another process runs it."""
    task = task or site.tasks.of_run(run.id)
    progress = task.progress if task else None
    if progress is None:
        sums = totals.arm_totals(run.store, run.id, run.record.scoring)
        progress = Progress(
            [arm.name for arm in run.plan_arms], totals.planned_trials(run.store, run.plan.id, run.plan_arms)
        )
        progress.restore(sums, "resume", totals.failure_reasons(run.store, run.id, run.record.scoring))
        return {**_counts(progress), "waits": [], "rate": None, "left": None, "part": None}
    part = "run {} of {}".format(*task.part) if task and task.part[1] > 1 else None
    return {**_counts(progress), "rate": progress.rate, "left": progress.seconds_left, "part": part}


def _counts(progress: Progress) -> dict[str, Any]:
    arms = [
        {
            "name": arm.name,
            "done": arm.done,
            "total": arm.total,
            "mean": None if arm.mean is None else round(100 * arm.mean, 1),
            "bad": arm.failed + arm.unscored,
            "left": arm.left_words,
        }
        for arm in progress.arms
    ]
    return {
        "done": progress.done,
        "total": progress.total,
        "bad": sum(arm["bad"] for arm in arms),
        "cost": dollars(total(arm.cost for arm in progress.arms)),
        "waits": progress.held_back(),
        "failures": progress.reasons(),
        "arms": arms,
    }


def _cells(run: Run, task: Task | None, cases: list[int]) -> dict[str, Any]:
    """Return the grid cells of these cases, by `case.arm`."""
    cells: dict[str, Any] = {}
    for cell in browsing.cells(run.store, run.record, cases) if cases else ():
        cells[f"{cell.case}.{cell.arm}"] = {
            "mean": None if cell.mean is None else round(100 * cell.mean, 1),
            "scored": cell.scored,
            "failed": cell.failed,
            "unscored": cell.unscored,
        }
    wanted = set(cases)
    for (case, arm, _), answer in list(task.answers.items()) if task else ():
        if case in wanted:
            entry = cells.setdefault(f"{case}.{arm}", {"mean": None, "scored": 0, "failed": 0, "unscored": 0})
            entry["saying"] = answer.text if len(answer.text) <= _TAIL else f"…{answer.text[-_TAIL:]}"
    return cells
