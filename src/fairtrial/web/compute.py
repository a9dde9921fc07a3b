"""Numbers about large runs, worked out in a process of their own: pages and runs keep the interpreter for themselves.

It reads what it is to do from its standard input and ends when that ends, however its parent did.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from typing import IO, Any

import msgspec

from fairtrial.analyse import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store

WorkOut = Callable[..., Any]  # a function of a module: runs and arguments in, something that msgspec can pack out


class ComputeProcess:
    """The process, started when it is first needed."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def work_out(self, function: WorkOut, runs: Sequence[str], args: tuple[Any, ...]) -> bytes:
        """What a function makes of these runs, packed. A reason why there is nothing is raised."""
        with self._lock:
            process = self._started()
            assert process.stdin is not None and process.stdout is not None
            try:
                pickle.dump((function, self._store, list(runs), args), process.stdin)
                process.stdin.flush()
                reason, body = pickle.load(process.stdout)  # noqa: S301  # our own process wrote it
            except (OSError, EOFError, pickle.UnpicklingError):
                self._process = None
                raise FairtrialError("the numbers could not be worked out: the process ended; try again") from None
        if reason:
            raise FairtrialError(reason)
        return bytes(body)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "fairtrial.web.compute"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the server
            )
        return self._process

    def close(self) -> None:
        """End it, also in the middle of something."""
        if self._process is not None:
            with suppress(OSError):
                self._process.kill()
            self._process.wait()


def serve(asked: IO[bytes], told: IO[bytes]) -> None:
    """Do what is asked until nobody asks any more."""
    stores: dict[str, Store] = {}
    while True:
        try:
            function, path, runs, args = pickle.load(asked)  # noqa: S301  # our own parent wrote it
        except EOFError:
            return
        store = stores.setdefault(path, Store(path, create=False))
        try:
            found = function([Run(store, store.run_of_id(run)) for run in runs], *args)
            reply = ("", msgspec.msgpack.encode(found))
        except FairtrialError as error:
            reply = (str(error), b"")
        except Exception as error:  # whatever it is, the server must hear of it
            reply = (f"{type(error).__name__}: {error}", b"")
        pickle.dump(reply, told)
        told.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
