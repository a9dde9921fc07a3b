"""What an answer has in common with the expected one, word by word."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from rapidfuzz.distance import Indel

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_MAX_WORDS, _MAX_CHARACTERS = 3000, 100_000  # of each text


class DiffPart(NamedTuple):
    """A piece of one of the two texts, or of both."""

    kind: Literal["same", "missing", "added"]
    text: str


def word_diff(expected: str | None, answer: str | None) -> list[DiffPart] | None:
    """Return what both texts have, what the answer lacks and what it adds; None if a text is empty or too long."""
    if not expected or not answer or max(len(expected), len(answer)) > _MAX_CHARACTERS:
        return None
    a, b = _WORDS.findall(expected), _WORDS.findall(answer)
    if len(a) > _MAX_WORDS or len(b) > _MAX_WORDS:
        return None
    parts: list[DiffPart] = []
    for step in Indel.opcodes(a, b):
        before = "".join(a[step.src_start : step.src_end])
        after = "".join(b[step.dest_start : step.dest_end])
        if step.tag == "equal":
            parts.append(DiffPart("same", before))
            continue
        parts += [DiffPart("missing", before)] if before else []
        parts += [DiffPart("added", after)] if after else []
    return parts
