"""What Ctrl-C does, and SIGTERM: the first one ends the command gracefully, the second one at once.

Nothing heavy is imported: this is there before everything else.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SAME = 0.2  # seconds within which a second signal is the same one: some programs pass on what all of a group have got
_DEAF = 10.0  # seconds until a process that has heard nothing of an interrupt, as it waits in C, is ended
_HEARD = 0.5  # seconds that the handler has for a second signal
_BUSY = 1.0  # seconds until a loop that does not take notice of an interrupt is interrupted in what it does


class Interrupts:
    """The process's handler of both signals, installed once."""

    def __init__(self) -> None:
        self._first = 0.0
        self._starting = True  # nothing has been begun that would have to be ended
        self._stops: list[Callable[[], object]] = []
        self._taken = True
        self._unraisable = sys.unraisablehook

    def install(self) -> Interrupts:
        """Handle both signals from now on."""
        for number in _SIGNALS:
            signal.signal(number, self)
        if hasattr(signal, "SIGALRM"):  # not on Windows, where a loop is woken up by Ctrl-C
            signal.signal(signal.SIGALRM, self._interrupt_what_is_done)
            self._listen()
        sys.unraisablehook = self._raise_again
        return self

    def leave(self, code: int) -> None:
        """End the process at once at either signal from now on: the command is over, and what it says is written."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
        for number in _SIGNALS:
            signal.signal(number, lambda *_, end=os._exit: end(code))  # `os` may be gone by then

    def _listen(self) -> None:
        """Hear signals in a thread, too: while the main one waits in C, as for a slow disk, no handler is called."""
        heard, told = os.pipe()
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        threading.Thread(target=self._end_if_deaf, args=(heard,), name="fairtrial-signals", daemon=True).start()

    def _end_if_deaf(self, heard: int) -> None:
        """End the process where the handler does not: at a second signal, or long after a first one."""
        first = _next_signal(heard)
        second = _next_signal(heard, first + _SAME, first + _DEAF)
        if not second and self._first:
            _next_signal(heard, first + _SAME)
        time.sleep(_HEARD)
        _end()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._starting or (self._first and now - self._first > _SAME):
            _end()
        if self._first:
            return
        self._first = now
        if not self._stops:
            raise KeyboardInterrupt
        self._taken = False
        self._stops[-1]()
        self._look_again(_BUSY)

    def _look_again(self, seconds: float) -> None:
        """Look after some seconds whether the interrupt was taken; with 0, stop looking."""
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, seconds)

    def _interrupt_what_is_done(self, number: int, frame: FrameType | None) -> None:
        if not self._taken:
            self._taken = True
            raise KeyboardInterrupt

    def _raise_again(self, unraisable: Any, /) -> None:
        """Raise an interrupt again that came where nothing can be raised, as in a callback of the garbage collector."""
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            self._unraisable(unraisable)
            return
        self._taken = False
        self._look_again(0.01)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Let Ctrl-C end the process at once while the block only imports something."""
        before, self._starting = self._starting, True
        yield
        self._starting = before

    def started(self) -> None:
        """Note that from now on there is something to end."""
        self._starting = False

    @contextmanager
    def stopping_by(self, stop: Callable[[], object]) -> Iterator[None]:
        """Have Ctrl-C call `stop` in the event loop while the block runs in it."""
        import asyncio  # `--help` does without

        loop = asyncio.get_running_loop()

        def take() -> None:
            self._taken = True
            self._look_again(0)
            stop()

        self._stops.append(lambda: loop.call_soon_threadsafe(take))
        try:
            yield
        finally:
            self._stops.pop()


def _next_signal(heard: int, after: float = 0.0, until: float | None = None) -> float:
    """Return when the next interrupt after some moment comes; 0 if none does in time."""
    while select.select([heard], [], [], None if until is None else max(0.0, until - time.monotonic()))[0]:
        if os.read(heard, 1)[0] in _SIGNALS and (now := time.monotonic()) > after:
            return now
    return 0.0


def installed() -> Interrupts:
    """Return the handler of this process; where the process is not ours, as in a notebook, one that is never called."""
    handler = signal.getsignal(signal.SIGINT)
    return handler if isinstance(handler, Interrupts) else Interrupts()


def _end() -> NoReturn:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
