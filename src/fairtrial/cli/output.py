"""Cleaned output: text from models and files cannot move the cursor, set colours or send commands to a CI server."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from fairtrial.core.private import write_private
from fairtrial.text.printable import printable, without_commands


def clean(text: str) -> str:
    """Return a text without anything that a terminal or CI server would obey."""
    text = printable(text.replace("\r\n", "\n").replace("\r", "\n"))
    return without_commands(text) if os.environ.get("GITHUB_ACTIONS") else text


def is_obeyed(stream: Any) -> bool:
    """Return whether a terminal, or GitHub Actions, may obey what a stream carries; a file obeys nothing."""
    if stream.isatty():
        return True
    try:
        in_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # not a stream of the operating system
        in_file = False
    return bool(os.environ.get("GITHUB_ACTIONS")) and not in_file


class CleanStream:
    """A stream that cleans what is written to it; our console cleans its own text and bypasses this."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # rich looks here for the underlying stream
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the cleaned text."""
        self._stream.write(clean(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def tell_github(command: str) -> None:
    """Write one command of our own for GitHub Actions to stderr, past the cleaning; its data must be escaped."""
    stream = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    stream.write(f"{printable(command)}\n")
    stream.flush()


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a Python warning as one line, without file and line number."""
    sys.stderr.write(f"warning: {message}\n")


@contextmanager
def clean_streams() -> Iterator[None]:
    """Clean everything that is printed inside this context, by any code."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = CleanStream(before[0]), CleanStream(before[1])
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            yield
    finally:
        sys.stdout, sys.stderr = before


def write_file(path: Path, body: bytes) -> None:
    """Write a file, and its folder if need be; a file that cannot be written is an error in one sentence."""
    try:
        write_private(path, body)
    except OSError as error:
        from fairtrial.core.errors import FairtrialError  # msgspec: `--help` does without

        raise FairtrialError(f"{path} cannot be written: {error.strerror or error}") from None
