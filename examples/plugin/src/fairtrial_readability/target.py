"""`plain_words`: repeats what it is asked in plainer words, offline."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from fairtrial.plugins import Answer, Failure, Options, Request, Target, TargetSpec

_PLAIN = {
    "applicants": "you",
    "assistance": "help",
    "commencement": "start",
    "designated": "right",
    "discontinued": "stopped",
    "endeavor": "try",
    "facilitate": "offer",
    "prior to": "before",
    "requested": "asked",
    "subsequent to": "after",
    "sufficient": "good",
    "termination": "the end",
    "utilize": "use",
}


class PlainWordsOptions(Options, frozen=True, kw_only=True):
    """`words` are more words to replace."""

    words: dict[str, str] = {}


class PlainWords(Target):
    """A target that answers with the question, in which long words are replaced by short ones."""

    options_type: ClassVar[type[Options]] = PlainWordsOptions

    def __init__(self, spec: TargetSpec, options: PlainWordsOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._words = _PLAIN | {long.lower(): short for long, short in options.words.items()}

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        for long, short in options.words.items():
            if not long.strip():
                yield f"plain_words cannot replace an empty word by `{short}`"

    async def ask(self, request: Request) -> Answer | Failure:
        started = time.perf_counter()
        text = _replaced(request.input, self._words)
        return Answer(text=text, finish_reason="stop", latency_ms=(time.perf_counter() - started) * 1000)


def _replaced(text: str, words: Mapping[str, str]) -> str:
    """Return a text with words replaced; one at the start of a sentence keeps its capital letter."""
    longest_first = sorted(words, key=len, reverse=True)
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, longest_first))})\b", re.IGNORECASE)

    def plain(match: re.Match[str]) -> str:
        word = words[match[0].lower()]
        return word.capitalize() if match[0][0].isupper() else word

    return pattern.sub(plain, text)
