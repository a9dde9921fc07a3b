"""What is at work in the background: runs, runs again, calibrations. Each in a thread with a loop of its own.

The pages' loop is never held up by a run, and a run is never held up by pages.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from fairtrial import pipeline
from fairtrial.config import Suite
from fairtrial.core.errors import FairtrialError
from fairtrial.core.hearing import Ear
from fairtrial.core.ids import new_id
from fairtrial.core.suite import JudgeSpec, ScorerSpec
from fairtrial.core.trial import Trial
from fairtrial.core.variables import Variables
from fairtrial.engine.progress import Progress
from fairtrial.engine.session import Engine
from fairtrial.store import Store
from fairtrial.store.store import Place
from fairtrial.store.todo import Mode
from fairtrial.workflows.calibrate import acalibrate
from fairtrial.workflows.resume import aresume

_LONGEST_HEARD = 400_000  # characters of one answer that are kept while it is given
_MOST_ENDED = 50


def print_broken(error: BaseException) -> None:
    """What broke, for whoever runs the server; keys are no part of it."""
    sys.stderr.write(Variables(os.environ).hide("".join(traceback.format_exception(error))))


class Heard:
    """What has been said so far of one answer."""

    def __init__(self, place: Place, forget: Callable[[Place], None], hide: Callable[[str], str] = str) -> None:
        self.place, self._forget, self._hide = place, forget, hide
        self._pieces: list[str] = []
        self.length = 0

    def begin(self) -> None:
        """An attempt begins."""
        self._pieces, self.length = [], 0

    def piece(self, text: str) -> None:
        """Some more of the answer."""
        if self.length < _LONGEST_HEARD:
            self._pieces.append(text)
        self.length += len(text)

    def end(self) -> None:
        """There will be no more."""
        self._forget(self.place)

    @property
    def text(self) -> str:
        """Everything so far, without values of variables."""
        return self._hide("".join(list(self._pieces)))


class Work:
    """One thing at work."""

    def __init__(self, what: str, about: str) -> None:
        self.id, self.what, self.about = new_id(), what, about
        self.run_ids: list[str] = []
        self.runs = 1  # how many runs it is to make
        self.series_id: str | None = None
        self.progress: Progress | None = None
        self.heard: dict[Place, Heard] = {}
        self.error = ""
        self.result: Any = None
        self.done, self.total = 0, 0  # of what has no progress of its own
        self.stopping = False
        self.begun, self.ended = threading.Event(), threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine: Engine | None = None
        self._task: asyncio.Task[Any] | None = None

    @property
    def run_id(self) -> str | None:
        """The run that it is at."""
        return self.run_ids[-1] if self.run_ids else None

    def stop(self) -> None:
        """Stop cleanly: calls under way are given up, everything answered is kept."""
        self.stopping = True
        if self._loop is not None and not self.ended.is_set():
            self._loop.call_soon_threadsafe(self._interrupt)

    def _interrupt(self) -> None:
        if self._engine is not None:
            self._engine.interrupt()
        elif self._task is not None:
            self._task.cancel()

    def start(self, work: Callable[[Work], Coroutine[Any, Any, Any]]) -> None:
        """Begin, in a thread of its own."""
        threading.Thread(target=self._live, args=(work,), name=f"fairtrial-{self.what}", daemon=True).start()

    def _live(self, work: Callable[[Work], Coroutine[Any, Any, Any]]) -> None:
        try:
            self.result = asyncio.run(self._alone(work(self)))
        except FairtrialError as error:
            self.error = str(error)
        except asyncio.CancelledError:
            self.error = "stopped"
        except Exception as error:  # whatever it was, the page says so, and the terminal has the rest
            print_broken(error)
            self.error = (
                f"something broke ({type(error).__name__}); the reason is in the terminal where the server runs"
            )
        finally:
            self.heard.clear()
            self.begun.set()
            self.ended.set()

    async def _alone(self, work: Awaitable[Any]) -> Any:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await work

    @asynccontextmanager
    async def watch(self, engine: Engine) -> AsyncIterator[None]:
        """Follow a session of work on a run."""
        self._engine, self.progress = engine, engine.progress
        engine.ears = self._listen
        self.run_ids.append(engine.work.run_id)
        self.begun.set()
        if self.stopping:
            engine.interrupt()
        try:
            yield
        finally:
            self._engine = None
            self.heard.clear()

    def _listen(self, trial: Trial) -> Ear:
        place = (trial.case.position, trial.arm.position, trial.repeat)
        hide = self._engine.hide if self._engine else str
        self.heard[place] = Heard(place, self._forget, hide)
        return self.heard[place]

    def _forget(self, place: Place) -> None:
        self.heard.pop(place, None)


class Works:
    """Everything at work in this server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._works: dict[str, Work] = {}

    def find(self, name: str) -> Work | None:
        """One of them, by its id."""
        return self._works.get(name)

    def open(self) -> list[Work]:
        """Those that have not ended."""
        return [work for work in list(self._works.values()) if not work.ended.is_set()]

    def of_run(self, run_id: str) -> Work | None:
        """Who works on a run just now."""
        return next((work for work in self.open() if work.run_id == run_id), None)

    def of_series(self, series_id: str) -> Work | None:
        """Who works on a series just now."""
        return next((work for work in self.open() if work.series_id == series_id), None)

    def close(self) -> None:
        """Stop everything, and wait until it is saved."""
        for work in self.open():
            work.stop()
        for work in self.open():
            work.ended.wait(20)

    def run(self, suite: Suite, runs: int = 1) -> Work:
        """Run a suite, once or several times in sequence."""
        work = Work("run", suite.name)
        work.runs = runs
        series = pipeline.Series(new_id(), runs) if runs > 1 else None
        work.series_id = series.id if series else None

        async def all_runs(work: Work) -> None:
            while len(work.run_ids) < runs and not work.stopping:
                await pipeline.arun(suite, store=self._store, series=series, watch=work.watch)

        return self._start(work, all_runs)

    def go_on(self, run_id: str, mode: Mode, overrides: dict[str, Any] | None = None) -> Work:
        """Resume a run, or try its failures again."""
        return self._start(
            Work(mode, run_id),
            lambda work: aresume(run_id, store=self._store, mode=mode, overrides=overrides or {}, watch=work.watch),
        )

    def calibrate(self, judge: JudgeSpec, *, scorer: ScorerSpec | None, runs: int, variables: Variables) -> Work:
        """Try a judge on answers of known worth."""

        def judged(done: int, total: int) -> None:
            work.done, work.total = done, total

        work = Work("calibration", judge.name)
        return self._start(
            work,
            lambda _: acalibrate(
                judge, scorer=scorer, runs=runs, variables=variables, store=self._store, judged=judged
            ),
        )

    def _start(self, work: Work, how: Callable[[Work], Coroutine[Any, Any, Any]]) -> Work:
        ended = [name for name, old in self._works.items() if old.ended.is_set()]
        for name in ended[:-_MOST_ENDED]:
            del self._works[name]
        self._works[work.id] = work
        work.start(how)
        return work
