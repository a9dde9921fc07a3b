"""What a trial did, step by step: slices of its trajectory, the whole of it as JSON, and a trial that is under way."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.core.events import Event, as_data
from fairtrial.core.experiment import Case
from fairtrial.core.place import Place
from fairtrial.engine.journals import open_session
from fairtrial.present.trajectory_view import TrajectoryView, trajectory_view, trial_steps
from fairtrial.store.files import kept_journals
from fairtrial.web.grid import is_position
from fairtrial.web.places import address_of, case_of, place_in
from fairtrial.web.site import Site, attachment


class Steps:
    """Parts of the page of a trial."""

    def __init__(self, site: Site) -> None:
        self._site = site
        trial = "/runs/{run}/cases/{case}/{arm}/{repeat}"
        self.routes = [Route(f"{trial}/steps", self._steps), Route(f"{trial}/events.json", self._events)]

    def _steps(self, request: Request) -> Response:
        """Show a slice of the steps, of a trial that has ended or is under way."""
        run = self._site.run(request.path_params["run"])
        place = place_in(run, request)
        case = case_of(run, place.case)
        trial = run.trial_at(place)
        shown = steps_of(run, place, case, trial, request.query_params)
        return self._site.page(request, "parts/steps.html.j2", **shown, ended=trial is not None)

    def _events(self, request: Request) -> Response:
        """Send the events as JSON: all of them, or one by its number."""
        run = self._site.run(request.path_params["run"])
        place = place_in(run, request)
        trial = run.trial_at(place)
        if trial is None:
            raise HTTPException(404)
        events = run.trajectory(place, case_of(run, place.case), trial)
        headers = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'"}
        wanted = request.query_params.get("number")
        if wanted is None:
            headers["Content-Disposition"] = attachment(f"events-{trial.trial_id[:12]}.json")
            return _json(events_document(trial, events), headers)
        if not is_position(wanted) or not 1 <= int(wanted) <= len(events):
            raise HTTPException(404)
        number = int(wanted)
        return _json({"number": number, **as_data(events[number - 1 : number])[0]}, headers)


def events_document(trial: TrialRecord, events: tuple[Event, ...]) -> dict[str, Any]:
    """Return the events of a trial, each with its number."""
    numbered = [{"number": number, **event} for number, event in enumerate(as_data(events), start=1)]
    not_told = (trial.trace or {}).get("not_told") or []
    return {"trial": trial.trial_id, "calls_not_recorded": not_told, "events": numbered}


def _json(document: dict[str, Any], headers: dict[str, str]) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json", headers=headers)


def steps_of(run: Run, place: Place, case: Case, trial: TrialRecord | None, params: QueryParams) -> dict[str, Any]:
    """Return what a page shows of the steps of a trial; `steps` is None where there is nothing to tell."""
    address = address_of(run.id, place)
    if trial is None:
        return {"steps": _under_way(run, place, case, params), "steps_address": address}
    return {"steps": trial_steps(run, place, case, trial, **_asked(params)), "steps_address": address}


def _under_way(run: Run, place: Place, case: Case, params: QueryParams) -> TrajectoryView | None:
    """Return the steps of a session that has not ended, from its journal."""
    folder = kept_journals(run.store, run.id)
    state = open_session(folder, case.id, run.plan_arms[place.arm].name, place.repeat + 1)
    if state is None or not state.trace:
        return None
    events = run.trajectory_so_far(place, case, state.trace)
    return trajectory_view(events, at_end="first" not in params, **_asked(params))


def _asked(params: QueryParams) -> dict[str, Any]:
    first = params.get("first", "")
    return {"only": params.get("only", ""), "first": int(first) if is_position(first) else 1}
