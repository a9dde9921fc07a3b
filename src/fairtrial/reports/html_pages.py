"""The web pages of a run in the HTML report, side by side: screenshots and findings.

Neither a report nor a site contains the pages themselves. A file has no HTTP headers, and on most web space they cannot
be set; without them, Chromium connects to whatever a page links to before it applies any policy. A page inside our own
(`srcdoc`) would have our policy, under which its scripts do not run.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.core.place import Place
from fairtrial.store.files import attachments, contents, scored_by
from fairtrial.webpage.criteria import CRITERIA

_SCORERS = ("browser", "code_judge")
_MAX_BYTES = 12_000_000  # of screenshots


Save = Callable[[str, str, bytes], str]  # hash, media type and bytes of a picture: returns its address


class _Screenshots:
    """Screenshots as data URLs, up to a total size at which the report can still be sent; or saved next to the page."""

    def __init__(self, run: Run, save: Save | None) -> None:
        self._run, self._save = run, save
        self._bytes_left = _MAX_BYTES
        self._hashes = attachments(run.store, run.id)
        self.left_out = 0

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def of_trial(self, place: Place) -> dict[str, str]:
        """Return the screenshots of a trial by name."""
        hashes = self._hashes.get(place, {})
        files = contents(self._run.store, list(hashes.values()))
        urls = {}
        for name, sha256 in sorted(hashes.items()):
            media, body = files[sha256]
            if self._save is not None:
                urls[name] = self._save(sha256, media, body)
                continue
            self._bytes_left -= len(body)
            if self._bytes_left < 0:
                self.left_out += 1
                continue
            urls[name] = f"data:{media};base64,{base64.b64encode(body).decode()}"
        return urls


def pages(run: Run, save: Save | None = None) -> dict[str, Any] | None:
    """Return every case with the page of each arm, or None if no page was rendered in a browser.

    Pictures are part of the page, or `save` puts them next to it.
    """
    screenshots = _Screenshots(run, save)
    if not screenshots and not scored_by(run.store, run.id, run.record.scoring, _SCORERS):
        return None
    return {"cases": list(_cases(run, screenshots)), "left_out": screenshots.left_out}


def _cases(run: Run, screenshots: _Screenshots) -> Iterator[dict[str, Any]]:
    """Yield the first repeat of every case, with all arms side by side."""
    first = (item for item in run.placed_trials() if item[1].repeat == 1)
    for _, group in groupby(first, key=lambda item: item[0][0]):
        trials = list(group)
        shown = [_page(trial, screenshots.of_trial(place)) for place, trial in trials]
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
    page: dict[str, Any] | None = (trial.details or {}).get("page")
    return page
