"""A rich console that removes control characters from the text it prints, so that all colours are our own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from rich import console
from rich.segment import Segment

from fairtrial.cli.output import clean


class Console(console.Console):
    """A console that cleans text from models and files before printing it."""

    @property
    def file(self) -> IO[str]:
        """Return the stream itself, below every stream around it: a live display puts another one around ours."""
        stream = super().file
        while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
            stream = inner
        return stream

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render(self, renderable: Any, options: console.ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments to print, with the text ones cleaned."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=clean(segment.text))
