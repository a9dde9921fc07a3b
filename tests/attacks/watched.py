"""Watches what this process does: programs that it starts, connections, code that it runs, files that it opens."""

from __future__ import annotations

import gc
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty")
_CONNECTIONS = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.gethostbyname", "urllib.Request")
_ROOT = Path(__file__).parents[2]
_OURS = tuple(
    str(Path(place).resolve())
    for place in {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), str(_ROOT), "/usr", "/etc/ssl"}
)
_SYSTEM = (
    "/proc",
    "/sys",
    "/dev/null",
    "/dev/urandom",
    "/dev/tty",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
)
_watching: list[Watched] = []


class Watched:
    """What was seen."""

    def __init__(self, *allowed: Path) -> None:
        self._allowed = tuple(str(path.resolve()) for path in allowed)
        self.seen: list[str] = []

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an event that somebody who only looks must not cause."""
        if event.startswith(_PROGRAMS) or event in _CONNECTIONS:
            self.seen.append(f"{event} {arguments[:2]!r}")
        elif event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not path.startswith((*self._allowed, *_OURS, *_SYSTEM)):
                self.seen.append(f"open {path}")


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    for watched in _watching:
        watched.note(event, arguments)


@contextmanager
def watching(*allowed: Path) -> Iterator[Watched]:
    """Watch this process; files may be opened below some folders, and where Python and this project are."""
    if not getattr(sys, "_fairtrial_watched", False):  # a hook stays for good
        sys.addaudithook(_hook)
        sys._fairtrial_watched = True  # type: ignore[attr-defined]
    gc.collect()  # what earlier tests left, such as stores in temporary folders, is removed before anything is seen
    watched = Watched(*allowed)
    _watching.append(watched)
    try:
        yield watched
    finally:
        _watching.remove(watched)
