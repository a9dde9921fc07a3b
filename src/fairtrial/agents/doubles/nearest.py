"""What is missing in a recording: a call, and the recorded one that is nearest to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fairtrial.agents.doubles.cassette import RecordedCall
from fairtrial.agents.doubles.notes import Note
from fairtrial.agents.doubles.played import Played
from fairtrial.text.printable import clipped, one_line

_LONGEST = 60  # characters of a value
_MOST = 3  # differences that are named


def missing_words(server: str, note: Note, played: Played) -> str:
    """Say which call is missing, and how the nearest one differs."""
    shown = f"{server}.{note.name}({', '.join(f'{name}: {value}' for name, value in _leaves(note.arguments))})"
    what = "mock" if played.source == "mock" else "recording"
    if what == "mock":
        return f"the mock has no answer to {shown}"
    alike = [call for call in played.calls if (call.kind, call.name) == (note.kind, note.name)]
    if not alike:
        return f"the recording has no call of {server}.{note.name}, and it was asked for {shown}"
    nearest = min(alike, key=lambda call: (len(_differences(note, call)), len(call.results)))
    differences = _differences(note, nearest)
    if not differences:
        times = f"{len(nearest.results)}" if len(nearest.results) > 1 else "1"
        if any("too_large" in reply for reply in nearest.results):
            return f"the result of {shown} was too large to be recorded"
        return f"the recording has {shown} {times}×, and it was called {note.unknown}×"
    more = f" and {len(differences) - _MOST} more" if len(differences) > _MOST else ""
    return f"the recording has no {shown}; the nearest one has {', '.join(differences[:_MOST])}{more}"


def _differences(note: Note, call: RecordedCall) -> list[str]:
    asked, known = dict(_leaves(note.arguments)), dict(_leaves(call.arguments))
    changed = [f"{name}: {known[name]}" for name in known if asked.get(name) != known[name]]
    return [*changed, *(f"no {name}" for name in asked if name not in known)]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield what arguments are made of: where it is, and what it is."""
    if isinstance(value, dict) and (value or not path):
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}" if path else str(name))
    else:
        yield path or "it", one_line(clipped(json.dumps(value, ensure_ascii=False), _LONGEST))
