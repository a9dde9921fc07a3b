"""Sanitising of untrusted text for terminals, CI servers and lists of names."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Control characters, characters that change the text direction, and line breaks.
_NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
_COMMAND = re.compile(r"^([^\S\n]*):(?=:)|##(?=\[)", re.MULTILINE)


def printable(text: str) -> str:
    """Replace control characters, so that they cannot move the cursor or set colours."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def level(text: str) -> str:
    """Replace characters that change the direction of what follows: they make a text look like another one."""
    return _DIRECTION.sub("\N{REPLACEMENT CHARACTER}", text)


def paired(text: str) -> str:
    """Replace unpaired surrogates, so that every database and file can store the text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def one_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return printable(" ".join(text.split()))


def without_commands(text: str) -> str:
    """Defuse everything that GitHub Actions would take for a command (`::error::` or `##[error]`)."""
    return _COMMAND.sub(lambda match: f"{match[1]}: " if match[1] is not None else "## ", text)


def name_problem(name: str) -> str | None:
    """Return why a name is not allowed, or None: names appear in terminals, logs, file names and images."""
    match = _NOT_IN_NAMES.search(name)
    return f"a name must not contain control characters (found {match[0]!a}): remove them" if match else None


def clipped(text: str, length: int) -> str:
    """Return the text, shortened to a length if it is longer."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def sentence_of(line: str) -> str:
    """Return a line of a list as a sentence of its own."""
    return f"{line[:1].upper()}{line[1:]}."


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 case, 2 cases."""
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def significant(value: float, digits: int = 6) -> str:
    """Return a number with this many digits; 0 where a solver or rounding left a trace of it, such as 8e-30."""
    return f"{value if abs(value) > 1e-9 else 0:.{digits}g}"


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text takes: four characters each, whatever the model."""
    return (len(text) + 3) // 4
