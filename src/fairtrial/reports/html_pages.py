"""The pages of a run, side by side: pictures, findings, and a sealed copy that can be tried."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from fairtrial.analyse import Run, TrialRecord
from fairtrial.store.files import attachments, contents, scored_by
from fairtrial.store.store import Place
from fairtrial.webpage.extract import extract
from fairtrial.webpage.looking import restless
from fairtrial.webpage.seal import POLICY, sealed

PREFIX = sealed("")  # what every sealed page begins with
# A document in an iframe is bound by the policy of the report as well: it must allow what sealed pages may do.
FRAME_POLICY = POLICY
_SCORERS = ("browser", "code_judge")
_CRITERIA = ("visual_accuracy", "code_quality", "functionality", "responsiveness")
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
    cases = list(_cases(run, album))
    return {
        "cases": cases,
        "prefix": base64.b64encode(PREFIX.encode()).decode(),
        "left_out": album.left_out,
    }


def _cases(run: Run, album: _Album) -> Iterator[dict[str, Any]]:
    """The first repeat of every case, arm beside arm."""
    first = (item for item in run.placed_trials() if item[1].repeat == 0)
    for _, found in groupby(first, key=lambda item: item[0][0]):
        trials = list(found)
        shown = [_page(trial, album.of(place)) for place, trial in trials]
        yield {"id": trials[0][1].case_id, "input": trials[0][1].input, "pages": shown}


def _page(trial: TrialRecord, pictures: dict[str, str]) -> dict[str, Any]:
    html = extract(trial.answer).html if trial.answer is not None else None
    details = _page_details(trial) or {"probes": [], "checks": []}
    return {
        "arm": trial.arm,
        "score": trial.status if trial.score is None else f"{100 * trial.score:.1f}",
        "note": _reason(trial),
        "pictures": pictures,
        "checks": details["checks"],
        "probes": [probe["words"] for probe in details["probes"] if probe["passed"] is False],
        "marks": [
            (name.replace("_", " "), f"{trial.metrics[name]:.0f}") for name in _CRITERIA if name in trial.metrics
        ],
        "body": _packed(html) if html is not None and not restless(trial.details) else "",
    }


def _packed(html: str) -> str:
    """A page without what all sealed pages begin with, as an attribute can hold it."""
    return base64.b64encode(sealed(html)[len(PREFIX) :].encode("utf-8", "replace")).decode()


def _reason(trial: TrialRecord) -> str:
    if trial.failure_message:
        return trial.failure_message
    return trial.unscored_message or ("" if trial.score else trial.notes or "")


def _page_details(trial: TrialRecord) -> dict[str, Any] | None:
    found: dict[str, Any] | None = (trial.details or {}).get("page")
    return found
