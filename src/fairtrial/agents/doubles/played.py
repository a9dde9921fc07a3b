"""What a double plays: a recording or a mock, as `double.py` reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from fairtrial.agents.doubles.cassette import CassetteError, RecordedCall, read_cassette
from fairtrial.agents.doubles.mocks import MockError, read_mock
from fairtrial.core.double import ServerDouble


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What is played in the place of a server."""

    source: str  # recorded or mock, as results say
    offers: dict[str, Any]
    sha256: str
    calls: list[RecordedCall] = []
    answers: dict[str, list[dict[str, Any]]] = {}  # of a mock, by tool

    def document(self, ignore: tuple[str, ...]) -> dict[str, Any]:
        """Return what `double.py` reads, with calls by what they mean."""
        calls: dict[str, list[dict[str, Any]]] = {}
        for call in self.calls:
            variant = {"results": call.results, "cases": call.cases}
            calls.setdefault(call.key(self.offers, ignore), []).append(variant)
        own = {"source": self.source, "offers": self.offers, "ignore": list(ignore)}
        return {**own, "calls": calls, "answers": self.answers}


def read_played(double: ServerDouble) -> Played:
    """Return what is played; raise CassetteError or MockError if it cannot be read."""
    if double.mock:
        mock = read_mock(Path(double.play))
        answers = {
            tool.name: [{"when": answer.when, "results": answer.replies()} for answer in tool.answers]
            for tool in mock.tools
        }
        return Played(source="mock", offers=mock.offers, sha256=mock.sha256, answers=answers)
    cassette = read_cassette(Path(double.play))
    return Played(source="recorded", offers=cassette.offers, sha256=cassette.sha256, calls=cassette.calls)


def problem_with(double: ServerDouble) -> str:
    """Return why nothing can be played; empty if it can, and is what it was when the suite was read."""
    try:
        played = read_played(double)
    except (CassetteError, MockError) as error:
        return f"{double} cannot be used: {error}"
    if played.sha256 != double.sha256 and double.record != double.play:
        return f"{double} has changed since the run was planned: run the suite again"
    return ""
