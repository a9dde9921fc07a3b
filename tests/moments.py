"""What kill -9 leaves on disk, at every moment of what is done with a store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from sqlalchemy import Engine, event


class Killed(BaseException):
    """The process has ended: nothing that comes after it is carried out."""


@contextmanager
def copied_moments(place: Path, keep: Path) -> Iterator[list[Path]]:
    """Copy a folder as it is before every commit, and before and after every change of files outside of a store.

    Between two commits a store in a file does not change for whoever opens it next.
    """
    moments: list[Path] = []

    def copy(*_: Any) -> None:
        moments.append(shutil.copytree(place, keep / f"moment-{len(moments)}", symlinks=True))

    def watched(change: Callable[..., Any]) -> Callable[..., Any]:
        def changing(*args: Any, **options: Any) -> Any:
            copy()
            result = change(*args, **options)
            copy()
            return result

        return changing

    event.listen(Engine, "commit", copy)
    try:
        with mock.patch.object(os, "replace", watched(os.replace)), mock.patch.object(os, "rename", watched(os.rename)):
            yield moments
    finally:
        event.remove(Engine, "commit", copy)


@contextmanager
def killed_at_commit(number: int) -> Iterator[list[str]]:
    """End what is done at its commit of this number, counted from 0: neither that nor anything after it is carried out.

    Yields a list that has an element once that has happened. For databases that are no folder.
    """
    seen, ended = [0], []

    def at_commit(*_: Any) -> None:
        if seen[0] >= number:
            ended.append("killed")
            raise Killed
        seen[0] += 1

    def at_statement(*_: Any) -> None:
        if ended:
            raise Killed

    event.listen(Engine, "commit", at_commit)
    event.listen(Engine, "before_cursor_execute", at_statement)
    try:
        yield ended
    finally:
        event.remove(Engine, "commit", at_commit)
        event.remove(Engine, "before_cursor_execute", at_statement)
