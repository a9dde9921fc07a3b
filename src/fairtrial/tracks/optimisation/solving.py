"""Solving in processes of our own, one for each processor: no problem can hang, crash or fill the memory of its asker.

Each worker (`worker`) is driven by a thread that starts it, gives it one problem after the other, keeps the best result
that it has reported, and kills it when a problem takes too long or when the result is no longer wanted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from queue import Empty, Queue, SimpleQueue

import msgspec
import numpy as np

from fairtrial.core.errors import FairtrialError, InterruptedWorkError, WorkFirstError
from fairtrial.text.printable import counted
from fairtrial.tracks.optimisation.certify import check_distance
from fairtrial.tracks.optimisation.problem import Baseline, OptimisationProblem
from fairtrial.tracks.optimisation.solve import MEMORY_MB
from fairtrial.tracks.optimisation.worker import Reply, SolvingTask

_START_SECONDS = 120.0  # for a worker to import what it needs: a busy machine may take long
_TICK = 0.1  # seconds between two looks at whether the results are still wanted
# The path of this process comes last: a file called random.py in somebody's folder is not the library's.
_BOOT = (
    "import sys, json; sys.path += [p for p in json.loads(sys.argv.pop()) if p not in sys.path]; "
    "from fairtrial.tracks.optimisation.worker import main; main()"
)
_processors = threading.BoundedSemaphore(os.cpu_count() or 1)  # workers of this process that may solve at a time

Stopped = Callable[[], bool]
# Where nothing may be solved, because somebody waits for an answer: what is missing is raised as NotSolvedError.
later: ContextVar[bool] = ContextVar("later", default=False)


class NotSolvedError(WorkFirstError):
    """Problems have no baseline yet, and this is not the time to solve them."""

    def __init__(self, problems: Sequence[OptimisationProblem], time_limit: float) -> None:
        self.problems, self.time_limit = tuple(problems), time_limit
        names = ", ".join(problem.id for problem in self.problems[:3])
        more = f" and {len(self.problems) - 3} more" if len(self.problems) > 3 else ""
        self.work = f"{counted(len(self.problems), 'problem')} to solve"
        super().__init__(f"not solved yet: {names}{more}; a new run of the suite solves them first")


class StoppedError(InterruptedWorkError):
    """Somebody stopped the solving; what was solved until then is kept."""

    def __init__(self) -> None:
        super().__init__("stopped: what was solved until then is kept")


def solve_all(tasks: Sequence[SolvingTask], stopped: Stopped | None = None) -> Iterator[Baseline]:
    """Yield the baseline of each task in turn, solved by as many processes as there are processors.

    A problem without an optimum raises FairtrialError. Leaving the iterator ends all workers at once.
    """
    crew = _Crew(tasks, stopped or (lambda: False))
    try:
        yield from crew.results()
    finally:
        crew.end()


class _Crew:
    """The threads that drive workers through the tasks of one call."""

    def __init__(self, tasks: Sequence[SolvingTask], stopped: Stopped) -> None:
        self._stopped, self._ending = stopped, threading.Event()
        self._waiting: SimpleQueue[tuple[int, SolvingTask]] = SimpleQueue()
        for item in enumerate(tasks):
            self._waiting.put(item)
        self._count = len(tasks)
        self._results: Queue[tuple[int, Baseline | BaseException]] = Queue()
        count = min(len(tasks), os.cpu_count() or 1)
        self._threads = [
            threading.Thread(target=self._drive, name="fairtrial-solving", daemon=True) for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def results(self) -> Iterator[Baseline]:
        """Yield results in the order of the tasks."""
        early: dict[int, Baseline | BaseException] = {}
        for number in range(self._count):
            while number not in early:
                with suppress(Empty):
                    place, result = self._results.get(timeout=_TICK)
                    early[place] = result
                if self._stopped():
                    raise StoppedError
            result = early.pop(number)
            if isinstance(result, BaseException):
                raise result
            yield result

    def end(self) -> None:
        """Kill the workers, and wait until they are gone."""
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _over(self) -> bool:
        return self._ending.is_set() or self._stopped()

    def _drive(self) -> None:
        """Work on tasks until none is left. The worker belongs to this thread, and ends with it."""
        worker: _Worker | None = None
        try:
            while not self._over():
                try:
                    number, task = self._waiting.get_nowait()
                except Empty:
                    return
                while not _processors.acquire(timeout=_TICK):
                    if self._over():
                        return
                try:
                    if worker is None or worker.is_gone:
                        worker = _Worker()
                    self._results.put((number, worker.solve(task, self._over)))
                except BaseException as error:  # it is raised where the result is waited for
                    self._results.put((number, error))
                finally:
                    _processors.release()
        finally:
            if worker is not None:
                worker.kill()


class _Worker:
    """One process that solves."""

    def __init__(self) -> None:
        path = json.dumps([str(Path(folder).absolute()) for folder in sys.path if folder])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, str(os.getpid()), str(MEMORY_MB), path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is for us, and we end it
        )
        self._replies: Queue[Reply | None] = Queue()
        threading.Thread(target=self._listen, name="fairtrial-solver-output", daemon=True).start()

    def _listen(self) -> None:
        """Take every reply as it comes, so that the worker never waits for us; None is the end."""
        assert self._process.stdout is not None
        with suppress(OSError, ValueError, msgspec.DecodeError):
            for line in self._process.stdout:
                self._replies.put(msgspec.json.decode(line, type=Reply))
        self._replies.put(None)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended or was killed."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End the process at once."""
        with suppress(OSError):
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()

    def solve(self, task: SolvingTask, over: Stopped) -> Baseline:
        """Return a baseline for a task; if it cannot be finished, the best that was found until then."""
        best = task.known
        self._send(task)
        deadline = time.monotonic() + _START_SECONDS
        try:
            while True:
                reply = self._next(deadline, over)
                if reply.kind == "begun":
                    deadline = time.monotonic() + hard_limit(task.time_limit)
                if reply.kind == "failed":
                    raise FairtrialError(reply.message)
                if reply.kind == "out of memory":
                    raise _CutShortError(f"it needs more than {MEMORY_MB} MB of memory; make it smaller")
                best = reply.baseline or best
                if reply.kind == "done" and best is not None:
                    return best
        except _CutShortError as error:
            self.kill()  # what it still does is of no use, and memory that a solver lost is lost
            return _best_so_far(task, best, error)

    def _send(self, task: SolvingTask) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has crashed: then no reply comes either
            self._process.stdin.write(msgspec.json.encode(task) + b"\n")
            self._process.stdin.flush()

    def _next(self, deadline: float, over: Stopped) -> Reply:
        """Return the next reply; raise _CutShortError if none comes."""
        while (left := deadline - time.monotonic()) > 0:
            if over():
                raise StoppedError
            try:
                reply = self._replies.get(timeout=min(left, _TICK))
            except Empty:
                continue
            if reply is None:
                why = f"the solver crashed, perhaps because it needs more than {MEMORY_MB} MB of memory"
                raise _CutShortError(why)
            return reply
        raise _OutOfTimeError


class _CutShortError(Exception):
    """A worker could not finish a task; the message ends a sentence about its problem."""


class _OutOfTimeError(_CutShortError):
    pass


def hard_limit(time_limit: float) -> float:
    """Return the seconds after which a worker is killed: solvers look at the clock only now and then."""
    return time_limit + min(10.0, max(1.0, 0.1 * time_limit))


def _best_so_far(task: SolvingTask, best: Baseline | None, error: _CutShortError) -> Baseline:
    if (best is None or best.x is None) and not isinstance(error, _OutOfTimeError):
        raise FairtrialError(f"{task.problem.id} cannot be solved: {error}") from None
    limit = task.time_limit
    if best is not None:
        check_distance(task.problem, None if best.x is None else np.asarray(best.x))
        return msgspec.structs.replace(best, time_limit=limit, seconds=best.seconds or limit)
    return Baseline.unknown(task.problem, limit)
