"""The result of a run on its page: computed once, with links to its cases, pairs and plans."""

from __future__ import annotations

from typing import Any

from fairtrial.analyse.causes import Causes
from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.core.place import Place
from fairtrial.present.figures import Links, variance_figure
from fairtrial.present.run_view import PairsView, RunView, pairs_view
from fairtrial.present.words.causes import CausesWords, causes_words
from fairtrial.present.words.planning import VARIANCE_COLUMNS, variance_cells
from fairtrial.web import numbers
from fairtrial.web.cache import NumberCache
from fairtrial.web.numbers import RunDetails, RunNumbers, RunVariance
from fairtrial.web.places import address_of
from fairtrial.web.site import url

_MAX_LIVE_TRIALS = 20_000  # a larger run in progress shows means only; its analysis waits for its end
_MOST_VARIANCES = 20


def numbers_of(cache: NumberCache, run: Run, *, wait: float) -> RunNumbers | None:
    """Return the numbers of a run; None until they are computed."""
    if run.status == "running" and run.plan.case_count * len(run.plan_arms) > _MAX_LIVE_TRIALS:
        return None
    return cache.get(f"run/{run.id}", [run], RunNumbers, numbers.run_numbers, wait=wait)


def result_of(cache: NumberCache, run: Run, known: RunNumbers) -> RunView:
    """Return what the page shows of the result."""
    return cache.drawn(f"result/{run.id}", known, lambda: RunView(run, known, run_links(run)))


def details_of(cache: NumberCache, run: Run, *, wait: float) -> dict[str, Any] | None:
    """Return every pair in words, and notes about them; None until they are computed."""
    if len(run.plan_arms) < 2:
        return {"pairs": PairsView(), "cases": []}
    try:
        found = cache.get(f"details/{run.id}", [run], RunDetails, numbers.run_details, wait=wait)
    except FairtrialError as error:
        return {"pairs": PairsView(notes=[str(error)]), "cases": []}
    return None if found is None else {"pairs": pairs_view(found.comparisons), "cases": found.cases}


def variance_of(cache: NumberCache, run: Run, *, wait: float) -> dict[str, Any] | None:
    """Return where the uncertainty of each arm comes from; None until it is computed."""
    try:
        found = cache.get(f"variance/{run.id}", [run], RunVariance, numbers.run_variance, wait=wait)
    except FairtrialError as error:
        return {"error": str(error)}
    if found is None:
        return None
    return {
        "error": "",
        "figure": variance_figure(found.arms[:_MOST_VARIANCES]),
        "columns": VARIANCE_COLUMNS,
        "rows": [variance_cells(arm) for arm in found.arms],
        "advice": {arm.label: arm.advice for arm in found.arms},
    }


def causes_of(cache: NumberCache, run: Run, *, wait: float) -> CausesWords | None:
    """Return what went wrong, by cause, with links to the trials; None until they have been looked into."""
    found = cache.get(f"causes/{run.id}", [run], Causes, numbers.run_causes, wait=wait)
    return None if found is None else causes_words(found, lambda trial: address_of(run.id, Place(*trial.place)))


def run_links(run: Run) -> Links:
    """Return where the arms and pairs of a run lead: to its grid, sorted by the arm, and to their comparison."""
    positions = {arm.name: str(arm.position) for arm in run.plan_arms}
    return Links(
        arm=lambda arm: f"{url(f'/runs/{run.id}', sort=positions.get(arm, ''))}#cases",
        pair=lambda a, b: url("/compare", runs=run.id, a=a, b=b),
        kind=lambda by, kind: f"{url(f'/runs/{run.id}', **{by: kind})}#cases",
        failed=f"/runs/{run.id}?show=failed#cases",
        unscored=f"/runs/{run.id}?show=unscored#cases",
        compare=f"/compare?runs={run.id}",
        plan=url("/plan", run=run.id),
        variance=f"/runs/{run.id}/variance",
        causes=f"/runs/{run.id}/causes",
    )
