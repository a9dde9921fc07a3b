"""Optimisation pages: problems with baselines, prompt styles by difficulty, and verified residuals of answers."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse import Run
from fairtrial.analyse.figures import Links, answer_gaps, leaders, pair_matrix, style_figures, style_kinds
from fairtrial.analyse.run import TrialRecord
from fairtrial.analyse.tiers import comparison_tiers
from fairtrial.analyse.wording.comparisons import sentence
from fairtrial.analyse.wording.tiers import headline_parts
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case
from fairtrial.scorers.optimisation import problem_of
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.web import numbers
from fairtrial.web.cache import LONG, patience
from fairtrial.web.result import run_links
from fairtrial.web.runs import has_scorer, run_line
from fairtrial.web.site import Site

_RECENT = 40
_MOST_ANSWERS = 200
_EVEN = (0.5, 0.5)
_AT_OPTIMUM = 1e-6  # normalised gap
_KINDS = (("difficulty", "By difficulty"), ("n", "By size"))


class Optimisation:
    """Pages about optimisation problems."""

    def __init__(self, site: Site) -> None:
        self._site = site
        site.before_visits.append(_builtin_problems)
        self.routes = [
            Route("/optimisation", self._list),
            Route("/optimisation/runs/{run}", self._run_row),
            Route("/optimisation/{problem}", self._problem),
            Route("/runs/{run}/styles", self._styles),
            Route("/runs/{run}/styles/result", self._styles_part),
        ]

    def _runs(self) -> list[Run]:
        records, _ = browsing.runs_page(self._site.store, RunQuery(), 0, _RECENT)
        return [run for run in (Run(self._site.store, record) for record in records) if has_scorer(run, "optimisation")]

    def _list(self, request: Request) -> Response:
        problems = _builtin_problems()
        sizes = sorted({problem.n for problem, _ in problems})
        families: dict[str, dict[int, list[Any]]] = {}
        for problem, baseline in problems:
            families.setdefault(problem.family, {}).setdefault(problem.n, []).append((problem, baseline))
        return self._site.page(
            request,
            "optimisation.html.j2",
            rows=problems,
            sizes=sizes,
            families=families,
            certified=sum(baseline.certified for _, baseline in problems),
            runs=[run_line(self._site, run, wait=0.0) for run in self._runs()],
        )

    def _run_row(self, request: Request) -> Response:
        """Show one run of the list once its numbers are computed."""
        run = self._site.run(request.path_params["run"])
        line = run_line(self._site, run, wait=LONG)
        return self._site.page(request, "parts/optimisation_run.html.j2", line={**line, "waits": False})

    def _problem(self, request: Request) -> Response:
        """Show a problem's statement, its baseline and the answers to it."""
        from fairtrial.optim.catalogue import baselines, by_name
        from fairtrial.optim.text import statement

        problem = by_name(request.path_params["problem"])
        folder = self._site.folder / ".fairtrial" / "baselines"
        baseline = baselines([problem], folder, time_limit=20)[0]
        answers: list[dict[str, Any]] = []
        for run in self._runs()[:10]:
            positions = browsing.positions_of(self._site.store, run.plan.id, problem.id)
            for position in positions[:1]:
                answers += [
                    {"run": run.record, "place": place, "trial": trial, "href": _address(run, place)}
                    for place, trial in run.placed_trials(position, 1)
                ]
        answers = answers[:_MOST_ANSWERS]
        by_arm: dict[str, list[tuple[TrialRecord, str]]] = {}
        for item in answers:
            by_arm.setdefault(item["trial"].arm, []).append((item["trial"], item["href"]))
        return self._site.page(
            request,
            "problem.html.j2",
            problem=problem,
            text=statement(problem),
            baseline=baseline,
            answer=msgspec.json.format(msgspec.json.encode(baseline.as_answer()), indent=2).decode(),
            answers=answers,
            headline=_problem_words([item["trial"] for item in answers]),
            gaps=answer_gaps(by_arm) if by_arm else "",
        )

    def _styles(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        text, problem = request.query_params.get("weights", ""), ""
        try:
            weights = _weights(text)
        except FairtrialError as error:
            weights, problem = _EVEN, str(error)
        return self._site.page(
            request,
            "styles.html.j2",
            run=run.record,
            weights=weights,
            entered=text or f"{weights[0]:g},{weights[1]:g}",
            problem=problem,
            styles=self._styles_of(run, weights, wait=patience(request.query_params)),
        )

    def _styles_part(self, request: Request) -> Response:
        """Show the styles once they are computed."""
        run = self._site.run(request.path_params["run"])
        weights = _weights(request.query_params.get("weights", ""))
        styles = self._styles_of(run, weights, wait=LONG)
        return self._site.page(request, "parts/styles.html.j2", run=run.record, styles=styles)

    def _styles_of(self, run: Run, weights: tuple[float, float], *, wait: float) -> dict[str, Any] | None:
        """Return what the page of styles shows; None until it is computed."""
        name = f"styles/{run.id}/{weights[0]:g}/{weights[1]:g}"
        try:
            found = self._site.cache.get(name, [run], numbers.Styles, numbers.styles, weights, wait=wait)
        except FairtrialError as error:
            return {"error": str(error)}
        return None if found is None else _styles_view(run, found)


def _styles_view(run: Run, found: numbers.Styles) -> dict[str, Any]:
    report, means = found.report, found.means
    comparisons = report.comparisons
    tiers = comparison_tiers(comparisons) if comparisons else None
    order = [one.label for one in tiers.places] if tiers else [arm.arm for arm in report.arms]
    links = run_links(run)
    return {
        "error": "",
        "report": report,
        "headline": headline_parts(tiers) if tiers else [],
        "arm_href": links.arm,
        "leaders": leaders(tiers, {}, Links(arm=links.arm)) if tiers else "",
        "matrix": pair_matrix(tiers) if tiers and len(order) > 2 else "",
        "figures": style_figures(means, order, links.arm),
        "kinds": [(title, figures) for by, title in _KINDS if (figures := style_kinds(means, by, order))],
        "sentences": [(pair, sentence(pair)) for pair in (comparisons.pairs if comparisons else [])],
        "problems": sum(means.cases["difficulty"].values()),
        "answers": sum(arm.overall.trials for arm in report.arms),
    }


def _address(run: Run, place: tuple[int, int, int]) -> str:
    return f"/runs/{run.id}/cases/{place[0] + 1}/{place[1] + 1}/{place[2] + 1}"


def _problem_words(trials: list[TrialRecord]) -> str:
    """Say how good the answers to a problem are."""
    if not trials:
        return "No answer to this problem yet."
    feasible = [trial for trial in trials if trial.metrics.get("feasible")]
    answers = "The only answer" if len(trials) == 1 else f"{len(feasible)} of {len(trials)} answers"
    if not feasible and len(trials) == 1:
        return "The only answer does not keep every constraint."
    if not feasible:
        return f"None of {len(trials)} answers keeps every constraint."
    gaps = [trial.metrics["normalised_gap"] for trial in feasible if "normalised_gap" in trial.metrics]
    best = ""
    if gaps:
        closest = min(gaps)
        best = f"; the best has a gap of {closest:.2g}" if closest > _AT_OPTIMUM else "; the best is the optimum"
    return f"{answers} {'keeps' if len(trials) == 1 else 'keep'} every constraint{best}."


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
    point = None if problem is None else read_answer(answer, problem.n, prompt=case.input).x
    if problem is None or point is None:
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
        return _EVEN
    try:
        following, closeness = (float(part) for part in text.replace(" ", "").split(","))
    except ValueError:
        raise FairtrialError("weights must be two numbers, such as 0.5,0.5") from None
    return (following, closeness)
