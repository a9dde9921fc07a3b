"""`fairtrial run --watch`: run the suite again when one of its files is saved; what did not change is not asked again.

Every run is a process of its own, so that it always sees the code as it was saved.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import click

from fairtrial import pipeline
from fairtrial.core.errors import FairtrialError
from fairtrial.text.printable import counted

_LOOK_EVERY = 0.2  # seconds
_CODE = (".py", ".js")
_MOST_FILES = 2000
_NOT_OWN = ("node_modules", "site-packages", "__pycache__")
Stamps = dict[Path, tuple[int, int]]


def watch_suite(suite: str, arguments: Sequence[str]) -> int:
    """Run `fairtrial run` with these arguments whenever a file of the suite is saved, until Ctrl-C."""
    files = _files_of(suite)
    try:
        while True:
            stamps = _stamps(files)
            changed = _run_until_change(arguments, stamps)
            if not changed:
                files = _files_of(suite) or files
                click.echo(f"watching {counted(len(files), 'file')} for changes; Ctrl-C ends this", err=True)
                changed = _wait_for_change({**_stamps(files), **stamps})
            click.echo(f"\n{', '.join(sorted(file.name for file in changed))} changed", err=True)
            files = _files_of(suite) or files
    except KeyboardInterrupt:
        return 0


def _run_until_change(arguments: Sequence[str], stamps: Stamps) -> set[Path]:
    """Run once; if a file is saved meanwhile, stop the run, which keeps its answers, and return what changed."""
    # A group of its own, so that a terminal sends Ctrl-C to this process alone.
    process = subprocess.Popen([sys.executable, "-m", "fairtrial", "run", *arguments], process_group=0)
    try:
        while process.poll() is None:
            if changed := _changed(stamps):
                process.send_signal(signal.SIGINT)
                process.wait()
                return changed
            time.sleep(_LOOK_EVERY)
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.wait()  # it stores what it has
        raise
    return set()


def _wait_for_change(stamps: Stamps) -> set[Path]:
    while not (changed := _changed(stamps)):
        time.sleep(_LOOK_EVERY)
    return changed


def _changed(stamps: Stamps) -> set[Path]:
    now = _stamps(stamps)
    return {file for file in stamps if now[file] != stamps[file]}


def _stamps(files: Iterable[Path]) -> Stamps:
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> tuple[int, int]:
    """Return what changes when a file is saved; editors may remove it for a moment."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _files_of(suite: str) -> set[Path]:
    """Return the files that make up a suite: itself, what it names, and the code next to it."""
    path = Path(suite)
    files = {path, path.parent / ".env", *_code_below(path.parent)}
    with suppress(FairtrialError):  # the run says what is wrong
        files |= pipeline.load(path, placeholders=True, whole=False).files_used()
    return files


def _code_below(folder: Path) -> Iterator[Path]:
    """Yield the source files below a folder, without installed packages."""
    for file in islice(folder.rglob("*"), _MOST_FILES):  # the suite may be in a home folder
        parts = file.relative_to(folder).parts
        if file.suffix in _CODE and not any(part.startswith(".") or part in _NOT_OWN for part in parts):
            yield file
