"""Parts of Markdown documents."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairtrial.text.printable import one_line

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#&~]|:(?=//)|(?<=www)\.)")  # the last two begin a link wherever they stand
_MENTION = re.compile(r"@(?=\w)")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    head = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return head + ["| " + " | ".join(map(plain, cells)) + " |" for cells in rows]


def plain(text: str) -> str:
    """Return a text on one line with all Markdown escaped; it has no links and no mentions."""
    return _MENTION.sub("@\u200b", _MARKUP.sub(r"\\\1", one_line(text)))
