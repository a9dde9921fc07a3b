"""A rich console that removes control characters from the text it prints, so that all colours are our own."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import IO, Any

from rich import console
from rich.segment import Segment

from fairtrial.cli.output import clean

_PIPED_WIDTH = 80
_MAX_WIDTH = 140  # lines longer than this are hard to read
# What to print where the terminal's encoding does not have a character; each is as wide as what it stands for.
_SUBSTITUTES = {
    "━": "-", "●": "o", "│": "|", "·": ".", "╌": "-", "─": "-", "█": "#", "▒": "=", "░": ".",
    "▲": "^", "▼": "v", "≈": "~",
    "▏": "#", "▎": "#", "▍": "#", "▌": "#", "▋": "#", "▊": "#", "▉": "#", "▕": "|", "■": "#", "✓": "+", "✗": "x",
    "−": "-", "–": "-", "≥": ">", "≤": "<", "×": "x", "…": "~", "’": "'", "“": '"', "”": '"', "±": "~", "∞": "8",
}  # fmt: skip


class Console(console.Console):
    """A console that cleans text from models and files before printing it, in 80 columns unless to a terminal."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"highlight": False, **settings})
        if self._width is None and not self.is_terminal:
            self._width = _PIPED_WIDTH

    @property
    def page_width(self) -> int:
        """The columns that a page of results may use."""
        return min(self.width, _MAX_WIDTH)

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
        """Yield the segments to print, with the text ones cleaned and in characters that the stream can carry."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=self._carried(clean(segment.text)))

    def _carried(self, text: str) -> str:
        if self._substitutes is None or text.isascii():
            return text
        return text.translate(self._substitutes).encode(self.encoding, "replace").decode(self.encoding)

    @cached_property
    def _substitutes(self) -> dict[int, str] | None:
        """What stands for the characters that the stream's encoding lacks; None if it has them all."""
        if self.encoding.startswith("utf"):
            return None
        return {
            ord(character): substitute
            for character, substitute in _SUBSTITUTES.items()
            if not _has(self.encoding, character)
        }


def _has(encoding: str, character: str) -> bool:
    try:
        character.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
