"""A series: several runs of one plan, watched from the first to the last, and then analysed together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.present.figures import series_figure
from fairtrial.present.words.comparisons import RUN_MEANS_COLUMNS, brief_lines, run_means_cells, sentence
from fairtrial.present.words.leaderboards import headline_parts
from fairtrial.present.words.series import SERIES_COLUMNS, series_cells
from fairtrial.store import browsing
from fairtrial.web import numbers
from fairtrial.web.cache import patience
from fairtrial.web.live import INTERVAL, INTERVAL_ELSEWHERE, event_stream, progress_of
from fairtrial.web.numbers import SeriesNumbers
from fairtrial.web.site import Site, form_view, go_to
from fairtrial.web.tasks import Task
from fairtrial.workflows.resume import series_size

_BETWEEN = 30.0  # seconds that another process may take from the end of one run to the beginning of the next
_ENDED = ("completed", "stopped", "incomplete")


class SeriesState(NamedTuple):
    """How far a series has come."""

    runs: list[Run]
    planned: int
    task: Task | None  # what works on it in this server
    error: str  # why its last task in this server ended
    live: bool

    @property
    def number(self) -> int:
        """The number of the run in progress, or of the last one."""
        return self.task.part[0] if self.task is not None else max(1, len(self.runs) + self.starting)

    @property
    def starting(self) -> bool:
        """Whether one run has ended and the next has not begun."""
        if self.task is not None:
            return self.task.part[0] > len(self.runs)
        return self.live and self.runs[-1].status != "running"

    @property
    def unfinished(self) -> bool:
        """Whether runs are missing, or one was interrupted, and no process is at work on them."""
        ended = [run for run in self.runs if run.status in _ENDED]
        return not self.live and len(ended) < self.planned

    @property
    def over(self) -> bool:
        """Whether nothing more will happen by itself or by a click."""
        return not self.live and not self.unfinished

    @property
    def shape(self) -> str:
        """What the page must be drawn anew for: runs that begin or end."""
        runs = ",".join(f"{run.id}:{run.status}" for run in self.runs)
        return f"{runs}/{self.number}{'*' if self.live else ''}"


def series_state(site: Site, series_id: str) -> SeriesState:
    """Return the state of a series."""
    last = site.tasks.last_of_series(series_id)  # before the runs are read: what it ends later is then read as ended
    task = last if last is not None and not last.ended.is_set() else None
    records = browsing.runs_of_series(site.store, series_id)
    runs = [Run(site.store, record) for record in records]
    planned = max(len(runs), series_size(records))
    error = last.error if last is not None and task is None and not last.stopping else ""
    elsewhere = any(run.status == "running" for run in runs) or (last is None and _is_between(runs, planned))
    return SeriesState(runs, planned, task, error, live=task is not None or elsewhere)


def _is_between(runs: list[Run], planned: int) -> bool:
    """Return whether another process may be about to begin the next run."""
    ended = runs[-1].record.ended_at if runs and len(runs) < planned and runs[-1].status in _ENDED else None
    return ended is not None and abs(time.time() - ended) < _BETWEEN  # or a clock was set


class SeriesPages:
    """Pages about series."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/series/{series}", self._show),
            Route("/series/{series}/events", self._events),
            Route("/series/{series}/stop", form_view(self._stop), methods=["POST"]),
            Route("/series/{series}/resume", form_view(self._resume), methods=["POST"]),
        ]

    def _state(self, series_id: str) -> SeriesState:
        state = series_state(self._site, series_id)
        if not state.runs:
            raise FairtrialError(f"no series `{series_id}` in this store")
        return state

    def _show(self, request: Request) -> Response:
        series_id = request.path_params["series"]
        state = self._state(series_id)
        return self._site.page(
            request,
            "series.html.j2",
            path="/runs",
            series_id=series_id,
            state=state,
            run=state.runs[-1].record,
            runs=[run.record for run in state.runs],
            plan=state.runs[0].plan,
            arms=state.runs[0].plan_arms,
            progress=self._progress(state) if state.live else None,
            multi=self._multi(state, wait=patience(request.query_params)),
            series_columns=SERIES_COLUMNS,
            run_means_columns=RUN_MEANS_COLUMNS,
        )

    def _progress(self, state: SeriesState) -> dict[str, Any]:
        """Return the progress of the run at work, and of all runs together."""
        progress = progress_of(self._site, state.runs[-1], state.task)
        ended = [run for run in state.runs if run.status != "running"]
        working = 0 if len(ended) == len(state.runs) else progress["done"]
        whole = {"all_done": len(ended) * progress["total"] + working, "all_total": state.planned * progress["total"]}
        part = f"run {state.number} of {state.planned}{' is starting' if state.starting else ''}"
        return {**progress, **whole, "part": part}

    def _multi(self, state: SeriesState, *, wait: float) -> dict[str, Any] | None:
        """Return the analysis across runs, None with fewer than two finished ones."""
        runs = [run for run in state.runs if run.status != "running"]
        if len(runs) < 2:
            return None
        name = f"series/{runs[0].record.series_id}"
        known = self._site.cache.get(name, runs, SeriesNumbers, numbers.series, wait=wait)
        if known is None:
            return {"waits": True}
        summary, comparisons = known.summary, known.summary.comparisons
        margin = comparisons.margin if comparisons else None
        pairs = comparisons.pairs if comparisons else []
        addresses = {run: f"/runs/{run}" for run in summary.run_ids}
        return {
            "waits": False,
            "figure": series_figure(summary, known.over_cases, addresses),
            "headline": headline_parts(known.leaderboard) if known.leaderboard else [],
            "rows": [series_cells(arm, over) for arm, over in summary.arms.items()],
            "runs": list(zip(summary.run_ids, summary.statuses, strict=True)),
            "scores": {arm: dict(zip(m.run_ids, m.scores, strict=True)) for arm, m in summary.arms.items()},
            "run_means": [cells for pair in pairs if (cells := run_means_cells(pair))],
            "verdicts": [(pair, sentence(pair, margin), brief_lines(pair)) for pair in pairs],
        }

    # -- while it runs ---------------------------------------------------------------------------

    async def _events(self, request: Request) -> Response:
        series_id = request.path_params["series"]
        await asyncio.to_thread(self._state, series_id)  # reports an unknown series before the stream begins
        return event_stream(self._stream(series_id))

    async def _stream(self, series_id: str) -> AsyncIterator[bytes]:
        before: dict[str, Any] = {}
        yield b"retry: 1000\n\n"
        while True:
            state = await asyncio.to_thread(self._state, series_id)
            event = {"shape": state.shape, "over": state.over, **await asyncio.to_thread(self._progress, state)}
            if event != before:
                yield b"data: " + msgspec.json.encode(event) + b"\n\n"
                before = event
            else:
                yield b": still here\n\n"
            if state.over:
                return
            await asyncio.sleep(INTERVAL if state.task else INTERVAL_ELSEWHERE)

    def _stop(self, request: Request, form: FormData) -> Response:
        """Stop the run in progress, and begin no other."""
        series_id = request.path_params["series"]
        task = self._site.tasks.of_series(series_id)
        if task is None and self._state(series_id).live:
            raise FairtrialError("this series is not in progress in this server: stop it where it was started")
        if task is not None:
            task.stop()
            task.ended.wait(10)
        return go_to(f"/series/{series_id}")

    def _resume(self, request: Request, form: FormData) -> Response:
        """Finish the run that was stopped, and make the missing ones."""
        series_id = request.path_params["series"]
        if not self._state(series_id).live:  # else somebody was quicker
            self._site.tasks.resume_series(series_id)
        return go_to(f"/series/{series_id}")
