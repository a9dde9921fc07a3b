"""Texts from outside, made harmless for whoever reads them: a terminal, a CI server, a spreadsheet of names."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Beside control characters, what turns the direction of a line around, and what breaks lines.
_NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_COMMAND = re.compile(r"^([^\S\n]*):(?=:)|##(?=\[)", re.MULTILINE)


def printable(text: str) -> str:
    """The text with control characters replaced: they can move no cursor and set no colour."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """A text for a place that has one line only, without control characters."""
    return printable(" ".join(text.split()))


def without_commands(text: str) -> str:
    """The text with nothing in it that GitHub Actions takes for a command (`::error::` or `##[error]`)."""
    return _COMMAND.sub(lambda match: f"{match[1]}: " if match[1] is not None else "## ", text)


def name_problem(name: str) -> str | None:
    """Why something cannot be called like that: names go into terminals, logs, file names and pictures."""
    found = _NOT_IN_NAMES.search(name)
    return f"a name must not have control characters (here {found[0]!a}): take them out" if found else None


def clipped(text: str, length: int) -> str:
    """The text, cut where it is longer than that."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
