"""What addresses of cases and trials mean: `/runs/RUN/cases/CASE/ARM/REPEAT`, where everything counts from 1."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request

from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case
from fairtrial.core.place import Place
from fairtrial.web.grid import is_position


def positions_in(request: Request, *names: str) -> list[int]:
    """Return positions from an address as positions that count from 0."""
    texts = [request.path_params[name] for name in names]
    if not all(is_position(text) for text in texts):
        raise HTTPException(404)
    return [int(text) - 1 for text in texts]


def case_of(run: Run, position: int) -> Case:
    """Return a case of a run; raise FairtrialError if there is none."""
    if not 0 <= position < run.plan.case_count:
        raise FairtrialError(f"run {run.id} has no case {position + 1}, only {run.plan.case_count} cases")
    return run.store.cases(run.plan.id, position, 1)[0]


def place_in(run: Run, request: Request) -> Place:
    """Return the place of a trial from an address; raise FairtrialError if its run has none there."""
    place = Place(*positions_in(request, "case", "arm", "repeat"))
    case_of(run, place.case)
    if not 0 <= place.arm < len(run.plan_arms) or place.repeat < 0:
        raise FairtrialError(f"run {run.id} has no such trial")
    return place


def pair_address(runs: Sequence[str], places: Sequence[Place]) -> str:
    """Return the address of two trials side by side."""
    run, place = runs[1], places[1]
    named = {} if run == runs[0] else {"run": run}
    query = urlencode({**named, "case": place.case + 1, "arm": place.arm + 1, "repeat": place.repeat + 1})
    return f"{address_of(runs[0], places[0])}/side-by-side?{query}"


def address_of(run_id: str, place: Place) -> str:
    """Return the address of a trial."""
    return f"/runs/{run_id}/cases/{place.case + 1}/{place.arm + 1}/{place.repeat + 1}"
