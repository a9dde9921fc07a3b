"""Numbers about large runs, computed in a separate process so that pages and runs keep the interpreter to themselves.

The process reads its jobs from standard input and exits when that is closed, however its parent ended.
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

from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store
from fairtrial.web.sources import code_key

Compute = Callable[..., Any]  # a module-level function of runs and arguments whose result msgspec can encode


class ComputeProcess:
    """The computing process, started when first needed."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def compute(self, function: Compute, code: str, runs: Sequence[str], args: tuple[Any, ...]) -> bytes:
        """Return the encoded result of a function of these runs; raise FairtrialError with the reason if it fails.

        `code` is the key of the sources that compute: the process refuses if it was started from others.
        """
        with self._lock:
            process = self._running_process()
            assert process.stdin is not None and process.stdout is not None
            try:
                pickle.dump((function, code, self._store, list(runs), args), process.stdin)
                process.stdin.flush()
                reason, body = pickle.load(process.stdout)  # noqa: S301  # our own process wrote it
            except (OSError, EOFError, pickle.UnpicklingError):
                self._process = None
                raise FairtrialError("the numbers could not be computed because the process ended; try again") from None
        if reason:
            raise FairtrialError(reason)
        return bytes(body)

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "fairtrial.web.compute"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the server
            )
        return self._process

    def close(self) -> None:
        """Kill the process, even in the middle of a job."""
        if self._process is not None:
            with suppress(OSError):
                self._process.kill()
            self._process.wait()


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Do the requested computations until the requests end."""
    stores: dict[str, Store] = {}
    while True:
        try:
            function, code, path, runs, args = pickle.load(requests)  # noqa: S301  # our own parent wrote it
        except EOFError:
            return
        store = stores.setdefault(path, Store(path, create=False))
        try:
            if code_key(function.__module__) != code:
                raise FairtrialError("this server is older than what is installed now; restart `fairtrial serve`")
            result = function([Run(store, store.run_of_id(run)) for run in runs], *args)
            reply = ("", msgspec.msgpack.encode(result))
        except FairtrialError as error:
            reply = (str(error), b"")
        except Exception as error:  # any error must reach the server
            reply = (f"{type(error).__name__}: {error}", b"")
        pickle.dump(reply, replies)
        replies.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
