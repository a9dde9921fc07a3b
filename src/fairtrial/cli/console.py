"""A console whose own colours are the only ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich import console
from rich.segment import Segment

from fairtrial.cli.output import clean


class Console(console.Console):
    """Shows what others wrote without whatever else is in it."""

    def render(self, renderable: Any, options: console.ConsoleOptions | None = None) -> Iterable[Segment]:
        """Whatever is shown, in pieces; those that carry text are cleaned."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=clean(segment.text))
