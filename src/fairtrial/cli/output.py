"""The one way to a terminal or a log: what others wrote moves no cursor, sets no colour and commands no CI server."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from fairtrial.core.text import printable, without_commands


def clean(text: str) -> str:
    """A text as it may be printed."""
    text = printable(text.replace("\r\n", "\n").replace("\r", "\n"))
    return without_commands(text) if os.environ.get("GITHUB_ACTIONS") else text


class CleanStream:
    """A stream that cleans what is written to it; a console, which has cleaned its own, goes past it."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # where rich looks for the stream behind this one
        self._stream = stream

    def write(self, text: str) -> int:
        """Write it, cleaned."""
        self._stream.write(clean(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning of the library, as people read it."""
    sys.stderr.write(f"warning: {message}\n")


@contextmanager
def clean_streams() -> Iterator[None]:
    """Everything that is printed inside is cleaned, whoever prints it."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = CleanStream(before[0]), CleanStream(before[1])
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            yield
    finally:
        sys.stdout, sys.stderr = before
