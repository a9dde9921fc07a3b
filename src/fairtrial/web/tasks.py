"""Tasks in the background: runs, resumed runs, calibrations. Each in a thread with a loop of its own.

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
from fairtrial.core.experiment import JudgeSpec, ScorerSpec
from fairtrial.core.ids import new_id
from fairtrial.core.listening import Listener
from fairtrial.core.place import Place
from fairtrial.core.trial import Trial
from fairtrial.core.variables import Variables
from fairtrial.engine.progress import Progress
from fairtrial.engine.watching import Session
from fairtrial.store import Store
from fairtrial.store.todo import Mode
from fairtrial.workflows.calibrate import acalibrate
from fairtrial.workflows.resume import aresume

_LONGEST_KEPT = 400_000  # characters of one answer that are kept while it is given
_MOST_ENDED = 50


def print_broken(error: BaseException) -> None:
    """What broke, for whoever runs the server; keys are no part of it."""
    sys.stderr.write(Variables(os.environ).hide("".join(traceback.format_exception(error))))


class LiveAnswer:
    """One answer while it is given: what has been said so far."""

    def __init__(self, place: Place, forget: Callable[[Place], None], hide: Callable[[str], str] = str) -> None:
        self.place, self._forget, self._hide = place, forget, hide
        self._pieces: list[str] = []
        self.length = 0

    def begin(self) -> None:
        """An attempt begins."""
        self._pieces, self.length = [], 0

    def piece(self, text: str) -> None:
        """Some more of the answer."""
        if self.length < _LONGEST_KEPT:
            self._pieces.append(text)
        self.length += len(text)

    def end(self) -> None:
        """There will be no more."""
        self._forget(self.place)

    @property
    def text(self) -> str:
        """Everything so far, without values of variables."""
        return self._hide("".join(list(self._pieces)))


class Task:
    """One thing at task."""

    def __init__(self, what: str, about: str) -> None:
        self.id, self.what, self.about = new_id(), what, about
        self.run_ids: list[str] = []
        self.runs = 1  # how many runs it is to make
        self.series_id: str | None = None
        self.progress: Progress | None = None
        self.answers: dict[Place, LiveAnswer] = {}
        self.error = ""
        self.result: Any = None
        self.done, self.total = 0, 0  # of what has no progress of its own
        self.stopping = False
        self.begun, self.ended = threading.Event(), threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: Session | None = None
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
        if self._session is not None:
            self._session.interrupt()
        elif self._task is not None:
            self._task.cancel()

    def start(self, task: Callable[[Task], Coroutine[Any, Any, Any]]) -> None:
        """Begin, in a thread of its own."""
        threading.Thread(target=self._live, args=(task,), name=f"fairtrial-{self.what}", daemon=True).start()

    def _live(self, task: Callable[[Task], Coroutine[Any, Any, Any]]) -> None:
        try:
            self.result = asyncio.run(self._alone(task(self)))
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
            self.answers.clear()
            self.begun.set()
            self.ended.set()

    async def _alone(self, task: Awaitable[Any]) -> Any:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await task

    @asynccontextmanager
    async def watch(self, session: Session) -> AsyncIterator[None]:
        """Follow a session of work on a run."""
        self._session, self.progress = session, session.progress
        session.listen = self._listen
        self.run_ids.append(session.job.run_id)
        self.begun.set()
        if self.stopping:
            session.interrupt()
        try:
            yield
        finally:
            self._session = None
            self.answers.clear()

    def _listen(self, trial: Trial) -> Listener:
        hide = self._session.job.variables.hide if self._session else str
        answer = LiveAnswer(trial.place, self._forget, hide)
        self.answers[trial.place] = answer
        return answer

    def _forget(self, place: Place) -> None:
        self.answers.pop(place, None)


class Tasks:
    """The background tasks of this server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tasks: dict[str, Task] = {}

    def find(self, name: str) -> Task | None:
        """One of them, by its id."""
        return self._tasks.get(name)

    def open(self) -> list[Task]:
        """Those that have not ended."""
        return [task for task in list(self._tasks.values()) if not task.ended.is_set()]

    def of_run(self, run_id: str) -> Task | None:
        """Who works on a run just now."""
        return next((task for task in self.open() if task.run_id == run_id), None)

    def of_series(self, series_id: str) -> Task | None:
        """Who works on a series just now."""
        return next((task for task in self.open() if task.series_id == series_id), None)

    def close(self) -> None:
        """Stop everything, and wait until it is saved."""
        for task in self.open():
            task.stop()
        for task in self.open():
            task.ended.wait(20)

    def run(self, suite: Suite, runs: int = 1) -> Task:
        """Run a suite, once or several times in sequence."""
        task = Task("run", suite.name)
        task.runs = runs
        series = pipeline.Series(new_id(), runs) if runs > 1 else None
        task.series_id = series.id if series else None

        async def all_runs(task: Task) -> None:
            while len(task.run_ids) < runs and not task.stopping:
                await pipeline.arun(suite, store=self._store, series=series, watch=task.watch)

        return self._start(task, all_runs)

    def go_on(self, run_id: str, mode: Mode, overrides: dict[str, Any] | None = None) -> Task:
        """Resume a run, or try its failures again."""
        return self._start(
            Task(mode, run_id),
            lambda task: aresume(run_id, store=self._store, mode=mode, overrides=overrides or {}, watch=task.watch),
        )

    def calibrate(self, judge: JudgeSpec, *, scorer: ScorerSpec | None, runs: int, variables: Variables) -> Task:
        """Try a judge on answers of known worth."""

        def judged(done: int, total: int) -> None:
            task.done, task.total = done, total

        task = Task("calibration", judge.name)
        return self._start(
            task,
            lambda _: acalibrate(
                judge, scorer=scorer, runs=runs, variables=variables, store=self._store, judged=judged
            ),
        )

    def _start(self, task: Task, how: Callable[[Task], Coroutine[Any, Any, Any]]) -> Task:
        ended = [name for name, old in self._tasks.items() if old.ended.is_set()]
        for name in ended[:-_MOST_ENDED]:
            del self._tasks[name]
        self._tasks[task.id] = task
        task.start(how)
        return task
