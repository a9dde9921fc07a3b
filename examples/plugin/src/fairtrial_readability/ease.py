"""Flesch's reading ease of English texts: 100 is very easy, 60 plain English, 30 and less for experts."""

from __future__ import annotations

import re
from typing import NamedTuple

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_VOWELS = re.compile(r"[aeiouy]+")
_SILENT_E = re.compile(r"(?<![aeiouyl])e$")


class Reading(NamedTuple):
    """What was counted in a text."""

    words: int
    sentences: int
    syllables: int

    @property
    def ease(self) -> float:
        """Flesch's reading ease, kept between 0 and 100; a text without words has 0."""
        if not self.words:
            return 0.0
        ease = 206.835 - 1.015 * self.words / self.sentences - 84.6 * self.syllables / self.words
        return min(100.0, max(0.0, ease))


def read(text: str) -> Reading:
    """Count sentences, words and (about right) syllables."""
    words = [_WORD.findall(sentence) for sentence in sentences(text)]
    return Reading(
        words=sum(map(len, words)),
        sentences=sum(map(bool, words)),
        syllables=sum(_syllables(word) for sentence in words for word in sentence),
    )


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; a new line begins a new one."""
    return [sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def hardest(text: str) -> str:
    """Return the sentence that is hardest to read; empty if there is none."""
    return min((one for one in sentences(text) if read(one).words), key=lambda one: read(one).ease, default="")


def _syllables(word: str) -> int:
    return max(1, len(_VOWELS.findall(_SILENT_E.sub("", word.lower()))))
