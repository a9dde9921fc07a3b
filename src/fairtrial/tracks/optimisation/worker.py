"""Solve problems in a process of our own: run as a module, it reads tasks from its input, line by line.

`solving` starts it, and kills it when a task takes too long. What solvers print goes nowhere: the replies have the
output to themselves. However the parent ends, we end too: our input is then closed, which a thread of its own notices,
and on Linux the kernel kills us even if no thread of ours can run.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Literal

import msgspec

from fairtrial.tracks.optimisation.problem import Baseline, OptimisationProblem

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_NICE = 5  # whoever waits for a page, or types, comes first


class SolvingTask(msgspec.Struct, frozen=True, kw_only=True):
    """A problem to solve, what is known of it, and the seconds that there are for it."""

    problem: OptimisationProblem
    time_limit: float
    known: Baseline | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says: that it begins, what it has found so far, how a task ended, or why it could not be done."""

    kind: Literal["begun", "so far", "done", "failed", "out of memory"]
    baseline: Baseline | None = None
    message: str = ""


def main() -> None:
    """Do the tasks of the input until it ends."""
    _die_with(int(sys.argv[1]))
    _limit_memory(float(sys.argv[2]))
    replies = private_output()
    with suppress(OSError):
        os.nice(_NICE)
    tasks = _incoming()
    while True:
        _write(replies, _done(tasks.get(), replies))


def _done(task: SolvingTask, replies: IO[bytes]) -> Reply:
    """Do a task, reporting the best that is known on the way; every mishap is a reply too."""
    from fairtrial.core.errors import FairtrialError
    from fairtrial.tracks.optimisation.certify import baseline
    from fairtrial.tracks.optimisation.solve import get_ready

    def report(so_far: Baseline) -> None:
        _write(replies, Reply(kind="so far", baseline=so_far))

    try:
        get_ready(task.problem)
        _write(replies, Reply(kind="begun"))  # the clock runs from here
        solved = baseline(task.problem, time_limit=task.time_limit, known=task.known, report=report)
        return Reply(kind="done", baseline=solved)
    except FairtrialError as error:
        return Reply(kind="failed", message=str(error))
    except MemoryError:
        return Reply(kind="out of memory")
    except Exception as error:  # modelling libraries and solvers raise errors of every kind
        reason = " ".join(str(error).split())[:200]
        return Reply(kind="failed", message=f"{task.problem.id} cannot be solved: {type(error).__name__}: {reason}")


def _incoming() -> SimpleQueue[SolvingTask]:
    """Return the tasks as they come in; the process ends with them, whatever it is doing."""
    tasks: SimpleQueue[SolvingTask] = SimpleQueue()
    lines = os.fdopen(os.dup(0), "rb")

    def read() -> None:
        with suppress(OSError, msgspec.DecodeError):
            for line in lines:
                tasks.put(msgspec.json.decode(line, type=SolvingTask))
        os._exit(0)

    threading.Thread(target=read, name="fairtrial-tasks", daemon=True).start()
    return tasks


def private_output() -> IO[bytes]:
    """Return our output for replies only; whatever else is printed, by C libraries too, is discarded."""
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return replies


def _write(replies: IO[bytes], reply: Reply) -> None:
    try:
        replies.write(msgspec.json.encode(reply) + b"\n")
        replies.flush()
    except OSError:  # nobody listens any more
        os._exit(0)


def _limit_memory(megabytes: float) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    size = int(megabytes * 2**20)
    for kind, limit in ((resource.RLIMIT_DATA, size), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):  # a lower limit is set already
            resource.setrlimit(kind, (limit, limit))


def _die_with(parent: int) -> None:
    """Have the kernel kill us when the thread that started us ends, where it can: a solver may hold the interpreter."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        if os.getppid() != parent:  # it ended while we were starting
            os._exit(0)


if __name__ == "__main__":
    main()
