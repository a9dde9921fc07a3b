"""Optimisation: problems with their baselines, prompt styles by difficulty, and every answer's verified residuals."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse import Run
from fairtrial.analyse.optimisation import OptimisationReport
from fairtrial.analyse.wording.comparisons import sentence
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case
from fairtrial.scorers.optimisation import problem_of
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.web import numbers
from fairtrial.web.cache import patience
from fairtrial.web.runs import has_scorer
from fairtrial.web.site import Site

_RECENT = 40


class Optimisation:
    """Pages about optimisation problems."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/optimisation", self._list),
            Route("/optimisation/{problem}", self._problem),
            Route("/runs/{run}/styles", self._styles),
        ]

    def _runs(self) -> list[Run]:
        records, _ = browsing.runs_page(self._site.store, RunQuery(), 0, _RECENT)
        return [run for run in (Run(self._site.store, record) for record in records) if has_scorer(run, "optimisation")]

    def _list(self, request: Request) -> Response:
        return self._site.page(
            request,
            "optimisation.html.j2",
            rows=_shipped(),
            runs=[run.record for run in self._runs()],
        )

    def _problem(self, request: Request) -> Response:
        """A problem in words, its baseline, and what was answered to it."""
        from fairtrial.optim.catalogue import baselines, by_name
        from fairtrial.optim.text import statement

        problem = by_name(request.path_params["problem"])
        shipped = Path(self._site.store.path).parent / "baselines"
        baseline = baselines([problem], shipped, time_limit=20)[0]
        answers: list[dict[str, Any]] = []
        for run in self._runs()[:10]:
            positions = browsing.positions_of(self._site.store, run.plan.id, problem.id)
            for position in positions[:1]:
                answers += [
                    {"run": run.record, "place": place, "trial": trial}
                    for place, trial in run.placed_trials(position, 1)
                ]
        return self._site.page(
            request,
            "problem.html.j2",
            problem=problem,
            text=statement(problem),
            baseline=baseline,
            answer=msgspec.json.format(msgspec.json.encode(baseline.as_answer()), indent=2).decode(),
            answers=answers[:200],
        )

    def _styles(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        wait = patience(request.query_params)
        weights = _weights(request.query_params.get("weights", ""))
        name = f"styles/{run.id}/{weights[0]:g}/{weights[1]:g}"
        found = self._site.cache.about(name, [run], OptimisationReport, numbers.styles, weights, wait=wait)
        pairs = found.comparisons.pairs if found and found.comparisons else []
        return self._site.page(
            request,
            "styles.html.j2",
            run=run.record,
            found=found,
            weights=weights,
            sentences=[(pair, sentence(pair)) for pair in pairs],
        )


class Residual(NamedTuple):
    """One thing that a point must satisfy, and by how much it misses it."""

    what: str
    violation: float


def residuals(case: Case, answer: str) -> list[Residual] | None:
    """Every constraint of a problem at the point of an answer, recomputed, worst first; None without a point."""
    if not (case.metadata or {}).get("problem"):
        return None
    import numpy as np

    from fairtrial.optim.answer import read_answer
    from fairtrial.optim.text import constraint_texts

    problem, _ = problem_of(case)
    point = read_answer(answer, problem.n).x
    if point is None:
        return None
    found = problem.violations(np.asarray(point, dtype=np.float64))
    texts = [f"({number}) {text}" for number, text in enumerate(constraint_texts(problem), 1)]
    named = [Residual(text, missed) for text, missed in zip(texts, found.constraints, strict=True)]
    named += [Residual("bounds of the variables", found.bounds)]
    named += [Residual("whole numbers", found.integrality)] if problem.integers else []
    return sorted(named, key=lambda residual: -residual.violation)


@cache
def _shipped() -> list[tuple[Any, Any]]:
    """Every problem that comes along, with its baseline."""
    from fairtrial.optim.catalogue import Selection, baselines, select

    problems = select(Selection())
    return list(zip(problems, baselines(problems), strict=True))


def _weights(text: str) -> tuple[float, float]:
    """What instruction following and closeness weigh: `0.5,0.5`."""
    if not text:
        return (0.5, 0.5)
    try:
        one, other = (float(part) for part in text.replace(" ", "").split(","))
    except ValueError:
        raise FairtrialError("weights are two numbers, such as 0.5,0.5") from None
    return (one, other)
