"""The pages of a run, side by side: pictures and findings.

Never the pages themselves: in a file there are no headers, and without them Chromium connects wherever a page wants to
go before it asks any policy.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from fairtrial.analyse import Run, TrialRecord
from fairtrial.core.place import Place
from fairtrial.store.files import attachments, contents, scored_by
from fairtrial.webpage.criteria import CRITERIA

_SCORERS = ("browser", "code_judge")
_MOST_BYTES = 12_000_000  # of pictures


class _Album:
    """Pictures as addresses, as long as the report stays of a size that can be sent."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._left = _MOST_BYTES
        self._hashes = attachments(run.store, run.id)
        self.left_out = 0

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def of(self, place: Place) -> dict[str, str]:
        """The pictures of a trial, by name."""
        hashes = self._hashes.get(place, {})
        found = contents(self._run.store, list(hashes.values()))
        shown = {}
        for name, sha256 in sorted(hashes.items()):
            media, body = found[sha256]
            self._left -= len(body)
            if self._left < 0:
                self.left_out += 1
                continue
            shown[name] = f"data:{media};base64,{base64.b64encode(body).decode()}"
        return shown


def pages(run: Run) -> dict[str, Any] | None:
    """Every case with the page of each arm; None where nothing was looked at in a browser."""
    album = _Album(run)
    if not album and not scored_by(run.store, run.id, run.record.scoring, _SCORERS):
        return None
    return {"cases": list(_cases(run, album)), "left_out": album.left_out}


def _cases(run: Run, album: _Album) -> Iterator[dict[str, Any]]:
    """The first repeat of every case, arm beside arm."""
    first = (item for item in run.placed_trials() if item[1].repeat == 0)
    for _, found in groupby(first, key=lambda item: item[0][0]):
        trials = list(found)
        shown = [_page(trial, album.of(place)) for place, trial in trials]
        yield {"id": trials[0][1].case_id, "input": trials[0][1].input, "pages": shown}


def _page(trial: TrialRecord, pictures: dict[str, str]) -> dict[str, Any]:
    details = _page_details(trial) or {"probes": [], "checks": []}
    return {
        "arm": trial.arm,
        "score": trial.status if trial.score is None else f"{100 * trial.score:.1f}",
        "note": _reason(trial),
        "pictures": pictures,
        "checks": details["checks"],
        "probes": [probe["words"] for probe in details["probes"] if probe["passed"] is False],
        "marks": [(name.replace("_", " "), f"{trial.metrics[name]:.0f}") for name in CRITERIA if name in trial.metrics],
    }


def _reason(trial: TrialRecord) -> str:
    if trial.failure_message:
        return trial.failure_message
    return trial.unscored_message or ("" if trial.score else trial.notes or "")


def _page_details(trial: TrialRecord) -> dict[str, Any] | None:
    found: dict[str, Any] | None = (trial.details or {}).get("page")
    return found
