"""Background tasks: runs, resumed runs and calibrations, each in a thread with its own event loop.

So a run never blocks the event loop of the pages, and pages never block that of a run.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from fairtrial import pipeline
from fairtrial.config import Suite
from fairtrial.config.keys import hide_keys
from fairtrial.core.defects import defect_of
from fairtrial.core.errors import FairtrialError
from fairtrial.core.ids import new_id
from fairtrial.core.listening import Listener
from fairtrial.core.mistakes import sentence_of
from fairtrial.core.place import Place
from fairtrial.core.settings import JudgeSpec
from fairtrial.core.trial import Trial
from fairtrial.core.trust import running_code
from fairtrial.engine.progress import Progress
from fairtrial.engine.watching import Session, Watch
from fairtrial.store import Store
from fairtrial.store.todo import Mode
from fairtrial.workflows.calibrate import acalibrate
from fairtrial.workflows.resume import aresume, aresume_series
from fairtrial.workflows.series import Part, arun_series, check_series

_MAX_CHARACTERS = 400_000  # of one answer that are kept while it is written
_MAX_ENDED = 50
_CLOSING = 20.0  # seconds in which all tasks save their work


def report(error: BaseException, what: str) -> str:
    """Say in the server's terminal what has failed, without keys, and where its file is; return what a page says."""
    defect = defect_of(error, ["fairtrial", "serve", what], hide_keys)
    sys.stderr.write(f"{defect.traceback}{defect.sentence()}\n")
    where = f" in the plug-in `{defect.plugin}`" if defect.plugin else ""
    return f"internal error{where} ({type(error).__name__}): see the terminal where the server runs for details"


class LiveAnswer:
    """The text so far of an answer that is being written."""

    def __init__(self, place: Place, forget: Callable[[Place], None], hide: Callable[[str], str] = str) -> None:
        self.place, self._forget, self._hide = place, forget, hide
        self._pieces: list[str] = []
        self.length = 0

    def begin(self) -> None:
        """Start a new attempt."""
        self._pieces, self.length = [], 0

    def piece(self, text: str) -> None:
        """Add a piece of the answer."""
        if self.length < _MAX_CHARACTERS:
            self._pieces.append(text)
        self.length += len(text)

    def end(self) -> None:
        """Mark the answer as complete."""
        self._forget(self.place)

    @property
    def text(self) -> str:
        """The text so far, without the values of variables."""
        return self._hide("".join(list(self._pieces)))


class Task:
    """One background task."""

    def __init__(self, what: str, about: str) -> None:
        self.id, self.what, self.about = new_id(), what, about
        self.run_ids: list[str] = []
        self.view = ""  # the part of the run's page that whoever started it wants to see
        self.part: Part = (1, 1)  # the number of the run that it works on, and how many there will be
        self.series_id: str | None = None
        self.progress: Progress | None = None
        self.answers: dict[Place, LiveAnswer] = {}
        self.error = ""
        self.result: Any = None
        self.done, self.total = 0, 0  # for tasks without a `Progress`
        self._started = time.monotonic()
        self.entered: dict[str, Any] = {}  # the form that started it, to be shown again if it fails
        self.key = ""  # what it is for: whoever wants the same waits for this one
        self.page, self.back = "/tasks", "/"  # where it is shown until there is a run, and where it was started
        self.stopping = False
        self.begun, self.ended = threading.Event(), threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: Session | None = None
        self._task: asyncio.Task[Any] | None = None

    @property
    def seconds(self) -> float:
        """For how long it has been going on."""
        return time.monotonic() - self._started

    @property
    def run_id(self) -> str | None:
        """The run that the task is working on."""
        return self.run_ids[-1] if self.run_ids else None

    @property
    def address(self) -> str:
        """Where to watch it: its series or run, or its own page until there is one."""
        if self.series_id is not None:
            return f"/series/{self.series_id}"
        return f"{self.page}/{self.id}" if self.run_id is None else f"/runs/{self.run_id}{self.view}"

    def stop(self) -> None:
        """Stop cleanly: abandon open calls and keep every answer so far."""
        self.stopping = True
        if self._loop is not None and not self.ended.is_set():
            self._loop.call_soon_threadsafe(self._interrupt)

    def _interrupt(self) -> None:
        if self._session is not None:
            self._session.interrupt()
        elif self._task is not None:
            self._task.cancel()

    def start(self, work: Callable[[Task], Coroutine[Any, Any, Any]]) -> None:
        """Start the work in a thread of its own."""
        threading.Thread(target=self._run, args=(work,), name=f"fairtrial-{self.what}", daemon=True).start()

    def _run(self, work: Callable[[Task], Coroutine[Any, Any, Any]]) -> None:
        try:
            with running_code():
                self.result = asyncio.run(self._await(work(self)))
        except FairtrialError as error:
            self.error = str(error)
        except asyncio.CancelledError:
            self.error = "stopped"
        except Exception as error:  # the page reports any error, and the terminal has the details
            self.error = sentence_of(error) or report(error, self.what)
        finally:
            self.answers.clear()
            self.begun.set()
            self.ended.set()

    async def _await(self, work: Awaitable[Any]) -> Any:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await work

    def watch_part(self, part: Part) -> Watch:
        """Follow the next run of a series, unless it was stopped just when the run before ended."""
        if self.stopping:
            raise asyncio.CancelledError
        self.part = part
        return self.watch

    @asynccontextmanager
    async def watch(self, session: Session) -> AsyncIterator[None]:
        """Follow a session of a run."""
        self._session, self.progress = session, session.progress
        session.listen = self._listen
        self.run_ids.append(session.job.run_id)
        if self.part[1] > 1:
            self.series_id = session.job.series_id
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
        """Return a task by its id."""
        return self._tasks.get(name)

    def open(self) -> list[Task]:
        """Return the tasks that have not ended."""
        return [task for task in list(self._tasks.values()) if not task.ended.is_set()]

    def of_run(self, run_id: str) -> Task | None:
        """Return the task that is working on a run now."""
        return next((task for task in self.open() if task.run_id == run_id), None)

    def of_series(self, series_id: str) -> Task | None:
        """Return the task that is working on a series now."""
        return next((task for task in self.open() if task.series_id == series_id), None)

    def last_of_series(self, series_id: str) -> Task | None:
        """Return the task that worked last on a series in this server, whether it has ended or not."""
        return next((task for task in reversed(list(self._tasks.values())) if task.series_id == series_id), None)

    def close(self) -> None:
        """Stop all tasks and wait until their work is saved."""
        for task in self.open():
            task.stop()
        deadline = time.monotonic() + _CLOSING
        for task in self.open():
            task.ended.wait(max(0.0, deadline - time.monotonic()))

    def run(self, suite: Suite, runs: int = 1, *, view: str = "") -> Task:
        """Run a suite, once or several times in sequence; `view` is the part of the run's page to show."""
        task = Task("run", suite.name)
        task.view = view
        if runs == 1:
            return self._start(task, lambda task: pipeline.arun(suite, store=self._store, watch=task.watch))
        check_series(suite, runs)
        return self._start(task, lambda task: arun_series(suite, runs, store=self._store, watch=task.watch_part))

    def resume(self, run_id: str, mode: Mode, overrides: dict[str, Any] | None = None) -> Task:
        """Resume a run, or retry its failures."""
        return self._start(
            Task(mode, run_id),
            lambda task: aresume(run_id, store=self._store, mode=mode, overrides=overrides or {}, watch=task.watch),
        )

    def resume_series(self, series_id: str, overrides: dict[str, Any] | None = None) -> Task:
        """Continue a series: finish the run that was stopped, and make the missing ones."""
        task = Task("resume", series_id)
        task.series_id = series_id
        return self._start(
            task,
            lambda task: aresume_series(series_id, store=self._store, overrides=overrides or {}, watch=task.watch_part),
        )

    def calibrate(self, judge: JudgeSpec, **how: Any) -> Task:
        """Calibrate a judge on answers with known scores; `how` is what `acalibrate` takes."""

        def judged(done: int, total: int) -> None:
            task.done, task.total = done, total

        task = Task("calibration", judge.name)
        return self._start(task, lambda _: acalibrate(judge, store=self._store, judged=judged, **how))

    def work(self, task: Task, work: Callable[[], Any]) -> Task:
        """Do what blocks, in a thread; whoever wants the same as a task that is at work waits for that one."""
        same = next((one for one in self.open() if (one.what, one.key) == (task.what, task.key) and task.key), None)
        if same is not None and not same.stopping:
            return same
        return self._start(task, lambda _: asyncio.to_thread(work))

    def _start(self, task: Task, work: Callable[[Task], Coroutine[Any, Any, Any]]) -> Task:
        ended = [name for name, old in self._tasks.items() if old.ended.is_set()]
        for name in ended[:-_MAX_ENDED]:
            del self._tasks[name]
        self._tasks[task.id] = task
        task.start(work)
        return task
