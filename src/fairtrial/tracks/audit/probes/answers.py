"""`answers`: an answer that is empty, always the same, evasive, or everything at once fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar

from fairtrial.tracks.audit.probe import Cheat
from fairtrial.tracks.audit.probes.nothing import right_to_do_nothing
from fairtrial.tracks.audit.subject import Subject
from fairtrial.tracks.audit.trick import Trick

_CONSTANT = ("{}", "null", "Done.")
_REFUSING = (
    "I cannot answer that.",
    "I'm sorry, but I can't help with that.",
    "I don't know.",
)
_FULL_MARKS = '{"score": 100, "passed": true}'
_MOST_CHOICES = 20


class Answers(Cheat):
    """Nobody passes without an answer to this very question."""

    name: ClassVar = "answers"
    for_questions: ClassVar = True
    nothing_there: ClassVar = "any answer is right"

    def tricks(self, subject: Subject) -> Iterator[Trick]:
        if subject.workspace is not None and right_to_do_nothing(subject):
            return
        right = {text.strip().casefold() for text in self._right(subject)}
        for what, text in self._texts(subject):
            if text.strip().casefold() not in right:
                yield Trick(what, answer=text)

    def _right(self, subject: Subject) -> tuple[str, ...]:
        solution = subject.solution
        return (*subject.case.accepted, *([solution.answer] if solution else []))

    def _texts(self, subject: Subject) -> Iterator[tuple[str, str]]:
        yield "an empty answer", ""
        yield from ((f"the answer `{text}`", text) for text in (*_CONSTANT, _FULL_MARKS))
        if not subject.refusing:
            yield from ((f"the answer `{text}`", text) for text in _REFUSING)
        if subject.workspace is None:
            yield "its question as the answer", subject.case.input
            yield from self._all_at_once(subject)

    def _all_at_once(self, subject: Subject) -> Iterator[tuple[str, str]]:
        choices = subject.case.choices or (subject.labels if subject.case.accepted else ())
        if 1 < len(choices) <= _MOST_CHOICES:
            letters = [chr(ord("A") + place) for place in range(len(choices))]
            yield "all choices as the answer", ", ".join(choices)
            yield "all choices as the answer", "\n".join(f"{a}) {b}" for a, b in zip(letters, choices, strict=True))
            yield "all choices as the answer", json.dumps(list(choices))
