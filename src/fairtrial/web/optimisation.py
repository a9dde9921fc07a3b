"""Optimisation pages: problems with baselines, prompt styles by difficulty, and verified residuals of answers."""

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
            rows=_builtin_problems(),
            runs=[run.record for run in self._runs()],
        )

    def _problem(self, request: Request) -> Response:
        """Show a problem's statement, its baseline and the answers to it."""
        from fairtrial.optim.catalogue import baselines, by_name
        from fairtrial.optim.text import statement

        problem = by_name(request.path_params["problem"])
        folder = Path(self._site.store.path).parent / "baselines"
        baseline = baselines([problem], folder, time_limit=20)[0]
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
        report = self._site.cache.get(name, [run], OptimisationReport, numbers.styles, weights, wait=wait)
        pairs = report.comparisons.pairs if report and report.comparisons else []
        return self._site.page(
            request,
            "styles.html.j2",
            run=run.record,
            report=report,
            weights=weights,
            sentences=[(pair, sentence(pair)) for pair in pairs],
        )


class Residual(NamedTuple):
    """A constraint and by how much a point violates it."""

    what: str
    violation: float


def residuals(case: Case, answer: str) -> list[Residual] | None:
    """Recompute every constraint at the answer's point and return the residuals, worst first; None without a point."""
    if not (case.metadata or {}).get("problem"):
        return None
    import numpy as np

    from fairtrial.optim.answer import read_answer
    from fairtrial.optim.text import constraint_texts

    problem, _ = problem_of(case)
    point = read_answer(answer, problem.n).x
    if point is None:
        return None
    violations = problem.violations(np.asarray(point, dtype=np.float64))
    texts = [f"({number}) {text}" for number, text in enumerate(constraint_texts(problem), 1)]
    rows = [Residual(text, violation) for text, violation in zip(texts, violations.constraints, strict=True)]
    rows += [Residual("bounds of the variables", violations.bounds)]
    rows += [Residual("whole numbers", violations.integrality)] if problem.integers else []
    return sorted(rows, key=lambda residual: -residual.violation)


@cache
def _builtin_problems() -> list[tuple[Any, Any]]:
    """Return every built-in problem with its baseline."""
    from fairtrial.optim.catalogue import Selection, baselines, select

    problems = select(Selection())
    return list(zip(problems, baselines(problems), strict=True))


def _weights(text: str) -> tuple[float, float]:
    """Parse the weights of instruction following and closeness, such as `0.5,0.5`."""
    if not text:
        return (0.5, 0.5)
    try:
        following, closeness = (float(part) for part in text.replace(" ", "").split(","))
    except ValueError:
        raise FairtrialError("weights must be two numbers, such as 0.5,0.5") from None
    return (following, closeness)
