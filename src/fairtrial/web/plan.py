"""Planning: how many cases it takes to see a difference, and where the next dollar helps most."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.planning import PairPower
from fairtrial.present.charts import needed_chart
from fairtrial.present.charts.svg import safe
from fairtrial.present.figures import variance_figure
from fairtrial.present.words.planning import power_line, steps_line
from fairtrial.present.words.prices import price_line
from fairtrial.text.printable import sentence_of
from fairtrial.web import numbers
from fairtrial.web.cache import patience
from fairtrial.web.entries import parse_number
from fairtrial.web.numbers import PlanNumbers
from fairtrial.web.site import Site, url

_POINTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)  # differences of the curve
_POWERS = (50, 80, 90, 95)


class Plan:
    """The planning page."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [Route("/plan", self._show)]

    def _show(self, request: Request) -> Response:
        params = request.query_params
        name = params.get("run", "") or next((run.id for run in self._site.newest_runs(1)), "")
        delta = min(50.0, max(0.5, parse_number(params.get("delta") or "3", "delta", whole=False)))
        power = min(99.0, max(10.0, parse_number(params.get("power") or "80", "power", whole=False)))
        a, b = params.get("a", ""), params.get("b", "")
        values: dict[str, Any] = {"plan": None, "run": None, "waits": False}
        if name:
            run = self._site.run(name)
            arms = (a, b) if a and b and a != b else ()
            deltas = tuple(sorted({*_POINTS, delta}))
            key = f"plan/{run.id}/{'|'.join(arms)}/{delta:g}/{power:g}"
            args = (arms, tuple(points / 100 for points in deltas), power / 100)
            known = self._site.cache.get(key, [run], PlanNumbers, numbers.plan_numbers, *args, wait=patience(params))
            values = {"run": run.record, "waits": known is None, "plan": known and _view(known, delta, power)}
        kept = {"run": name, "a": a, "b": b, "delta": f"{delta:g}", "power": f"{power:g}"}
        retry = url("/plan", **kept, wait=1)
        return self._site.page(request, "plan.html.j2", kept=kept, powers=_POWERS, retry=retry, **values)


def _view(known: PlanNumbers, delta: float, power: float) -> dict[str, Any]:
    view: dict[str, Any] = {
        "labels": known.labels,
        "pair": known.pair,
        "reason": known.reason,
        "variances": known.variances,
        "steps": {arm.label: steps_line(arm) for arm in known.variances if arm.std_err},
        "shares": variance_figure(known.variances),
    }
    if known.pair is None:
        return view
    repeats = max(1, round(known.pair.repeats))
    needed = _needed(known.pair, repeats)
    options = next(options for size, options in known.pair.cases_needed if abs(100 * size - delta) < 1e-6)
    chart = needed_chart(list(needed.items()), chosen=(delta, needed[delta]), now=known.pair.count, unit="points")
    return {
        **view,
        "needed": needed[delta],
        "by_repeats": options,
        "chart": safe(chart),
        "now": power_line(known.pair, power / 100),
        "price": sentence_of(price_line(known.pair.price)) if known.pair.price is not None else "",
    }


def _needed(pair: PairPower, repeats: int) -> dict[float, int]:
    """Return the cases needed by points; as many as show a difference show every larger one too."""
    needed: dict[float, int] = {}
    fewest = None
    for size, options in sorted(pair.cases_needed):
        cases = _cases(options, repeats)
        fewest = cases if fewest is None else min(fewest, cases)
        needed[round(100 * size, 6)] = fewest
    return needed


def _cases(options: list[tuple[int, int]], repeats: int) -> int:
    """Return the cases needed with these repeats, or with the nearest number of repeats that is known."""
    return min(options, key=lambda option: abs(option[0] - repeats))[1]
