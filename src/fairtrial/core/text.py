"""Texts from outside, made harmless for a terminal."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """The text with control characters replaced: they can move no cursor and set no colour."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def clipped(text: str, length: int) -> str:
    """The text, cut where it is longer than that."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
