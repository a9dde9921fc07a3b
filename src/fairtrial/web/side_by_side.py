"""Two trials of a case side by side: their calls aligned, and where they part."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.alignment import align
from fairtrial.analyse.run import Run
from fairtrial.analyse.steps import Step, Steps
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.core.errors import FairtrialError
from fairtrial.core.place import Place
from fairtrial.present.words.side_by_side import left_out_words, line_words, parting_words
from fairtrial.web.grid import is_position
from fairtrial.web.places import address_of, case_of, pair_address, place_in
from fairtrial.web.site import Site, url

_MOST = 100  # lines at once
_BEFORE = 3  # lines that are the same, before those where the trials part


class _Side(NamedTuple):
    name: str
    address: str
    trial: TrialRecord
    steps: tuple[Step, ...]


class SideBySide:
    """The page of two trials."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [Route("/runs/{run}/cases/{case}/{arm}/{repeat}/side-by-side", self._show)]

    def _show(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        place = place_in(run, request)
        other_run, other = self._other(run, place, request.query_params)
        a, b = _side(run, place, other_run is run), _side(other_run, other, other_run is run)
        if a.name == b.name:
            a, b = (side._replace(name=f"{side.name}, repeat {side.trial.repeat}") for side in (a, b))
        alignment = align(a.steps, b.steps)
        start = _start(request.query_params, alignment.parts, len(alignment.lines))
        lines = alignment.lines[start : start + _MOST]
        kept = {name: request.query_params.get(name, "") for name in ("run", "case", "arm", "repeat")}
        own = f"{a.address}/side-by-side"
        return self._site.page(
            request,
            "side_by_side.html.j2",
            run=run.record,
            case=case_of(run, place.case),
            sides=(a, b),
            headline=parting_words(alignment, a.name, b.name),
            notes=left_out_words(alignment, a.name, b.name),
            lines=line_words(lines, start + 1),
            parts=None if alignment.parts is None else alignment.parts + 1,
            jump=None
            if alignment.parts is None
            else f"{url(own, **kept, first=max(1, alignment.parts + 1 - _BEFORE))}#parts",
            before=url(own, **kept, first=max(1, start + 1 - _MOST)) if start else "",
            after=url(own, **kept, first=start + 1 + _MOST) if start + _MOST < len(alignment.lines) else "",
            swap=pair_address((other_run.id, run.id), (other, place)),
        )

    def _other(self, run: Run, place: Place, params: QueryParams) -> tuple[Run, Place]:
        """Return the other trial: what is not said of it is as of the first one."""
        other = self._site.run(params["run"]) if params.get("run") else run
        wanted = [params.get(name, "") for name in ("case", "arm", "repeat")]
        values = [int(text) - 1 if is_position(text) else known for text, known in zip(wanted, place, strict=True)]
        found = Place(*values)
        case_of(other, found.case)
        if not 0 <= found.arm < len(other.plan_arms) or found.repeat < 0:
            raise FairtrialError(f"run {other.id} has no such trial")
        return other, found


def _side(run: Run, place: Place, alone: bool) -> _Side:
    trial = run.trial_at(place)
    arm = run.plan_arms[place.arm].name
    name = arm if alone else f"{arm}, run {run.record.number}"
    if trial is None:
        raise FairtrialError(f"{name} has not answered this case, so there is nothing to compare")
    events: Any = run.trajectory(place, case_of(run, place.case), trial)
    return _Side(name, address_of(run.id, place), trial, Steps(events).all)


def _start(params: QueryParams, parts: int | None, count: int) -> int:
    """Return with which line a page begins: the one that was asked for, or a little before the trials part."""
    asked = params.get("first", "")
    if is_position(asked):
        return min(max(0, int(asked) - 1), max(0, count - 1))
    return 0 if parts is None or parts < _MOST - _BEFORE else parts - _BEFORE
