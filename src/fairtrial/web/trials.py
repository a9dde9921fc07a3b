"""Pages of one case under every arm, and of one trial with all its details."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.run import Run
from fairtrial.analyse.sent import transcript
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.core.expected import show_expected
from fairtrial.core.place import Place
from fairtrial.core.trace import ending
from fairtrial.present.word_diff import word_diff
from fairtrial.present.words.turns import checked_turns
from fairtrial.store import browsing
from fairtrial.store.files import attachments, contents
from fairtrial.web.grid import case_query
from fairtrial.web.places import case_of, place_in, positions_in
from fairtrial.web.site import Site, url
from fairtrial.web.steps import steps_of
from fairtrial.webpage.extract import extract
from fairtrial.webpage.looking import is_unresponsive
from fairtrial.webpage.seal import SANDBOX

_MAX_CHARACTERS = 60_000  # of a text on a page; the export has all of them
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Trials:
    """Pages of single cases and trials."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/runs/{run}/cases/{case}", self._case),
            Route("/runs/{run}/cases/{case}/{arm}/{repeat}", self._trial),
            Route("/files/{sha256}", self._file),
        ]

    def _case(self, request: Request) -> Response:
        """Show the same case under every arm, side by side."""
        run, (position,) = self._site.run(request.path_params["run"]), positions_in(request, "case")
        case = case_of(run, position)
        most = max(1, min(_MAX_REPEATS, _MAX_SHOWN // len(run.plan_arms)))
        places = [Place(position, arm.position, repeat) for arm in run.plan_arms for repeat in range(most)]
        stored = {cell.arm: cell.trials for cell in browsing.cells(run.store, run.record, [position])}
        trials: dict[int, list[tuple[Place, _ShortenedTrial]]] = {}
        for place, trial in run.found_at(places):
            trials.setdefault(place.arm, []).append((place, _shortened(trial)))
        judged = [place for own in trials.values() for place, _ in own][:_MAX_JUDGED]
        judgements = {place: run.judgements_at(place) for place in judged}
        return self._site.page(
            request,
            "case.html.j2",
            run=run.record,
            case=case,
            arms=[
                (
                    arm,
                    [(place, trial, judgements.get(place, [])) for place, trial in trials.get(arm.position, ())],
                    max(0, stored.get(arm.position, 0) - most),
                )
                for arm in run.plan_arms
            ],
            **self._neighbours(request, run, position),
        )

    def _trial(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        place = place_in(run, request)
        case = case_of(run, place.case)
        trial = run.trial_at(place)
        arm = run.plan_arms[place.arm]
        return self._site.page(
            request,
            "parts/trial.html.j2" if request.query_params.get("panel") else "trial.html.j2",
            run=run.record,
            case=case,
            arm=arm,
            arms=run.plan_arms,
            place=place,
            trial=_shortened(trial) if trial else None,
            others=browsing.first_answers(run.store, run.record, place.case, _GLIMPSE),
            repeats=browsing.repeats_near(run.store, run.id, place, _MOST_NEAR),
            prompt=trial.input if trial else transcript(arm, case, place.repeat),
            chat=run.chat_at(place, case),
            attached=[file.name for file in case.attach],
            **steps_of(run, place, case, trial, request.query_params),
            judgements=run.judgements_at(place) if trial else [],
            difference=word_diff(show_expected(trial.expected), trial.answer) if trial else None,
            parts=[part for show in self._site.trial_parts if trial and (part := show(case, trial))],
            checks=checked_turns(trial.details) if trial else [],
            ended=ending(trial.trace) if trial else "",
            kept_in=run.kept_workspace(trial) if trial else None,
            shots=attachments(run.store, run.id, place=place).get(place, {}),
            **self._page_values(request, trial),
            **self._neighbours(request, run, place.case),
        )

    def _page_values(self, request: Request, trial: TrialRecord | None) -> dict[str, Any]:
        """Return the page in an answer, live and sandboxed, and the browser's checks of it."""
        details = (trial.details if trial else None) or {}
        checked = details.get("page")
        hangs = is_unresponsive(details)
        html = extract(trial.answer).html if trial and trial.answer and (checked or "<html" in trial.answer) else None
        address = self._site.preview(request, html) if html and not hangs else None
        return {"page": checked, "preview": address, "sandbox": SANDBOX, "hangs": hangs}

    def _neighbours(self, request: Request, run: Run, position: int) -> dict[str, Any]:
        """Return the cases before and after this one among those that match the filter."""
        query = case_query(request.query_params)
        positions = self._site.orders.get(run, query) or ()
        current = positions.index(position) if position in positions else -1
        kept = {**query._asdict(), "show": "" if query.show == "all" else query.show}

        def number_at(index: int) -> int | None:
            return positions[index] + 1 if current >= 0 and 0 <= index < len(positions) else None

        return {
            "before": number_at(current - 1),
            "after": number_at(current + 1),
            "where": (current + 1, len(positions)) if current >= 0 else None,
            "kept": kept,
            "query": url("", **kept),
        }

    def _file(self, request: Request) -> Response:
        """Send a screenshot that was taken during scoring; its address is the hash of its content."""
        name = request.path_params["sha256"]
        stored = contents(self._site.store, [name]) if _SHA256.fullmatch(name) else {}
        if name not in stored or not stored[name][0].startswith("image/"):
            return Response(status_code=404)
        media, body = stored[name]
        headers = {"Cache-Control": "private, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
        return Response(body, media_type=media, headers={**headers, "Content-Security-Policy": "default-src 'none'"})


_MAX_JUDGED = 40
_MAX_REPEATS, _MAX_SHOWN = 50, 500  # answers of one arm to a case, and of all, on one page
_MOST_NEAR = 20  # repeats before and after one that a page leads to
_GLIMPSE = 200  # characters of another arm's answer


class _ShortenedTrial(NamedTuple):
    """A trial, with its answer shortened to what a page can show."""

    record: TrialRecord
    answer: str
    cut: bool


def _shortened(trial: TrialRecord) -> _ShortenedTrial:
    answer = trial.answer or ""
    shown, cut = answer[:_MAX_CHARACTERS], len(answer) > _MAX_CHARACTERS
    # The record has no more of it either: a page with many answers would hold all of them.
    record = msgspec.structs.replace(trial, answer=shown) if cut else trial
    return _ShortenedTrial(record, shown, cut)
