"""Optimisation pages: problems with baselines, prompt styles by difficulty, and verified residuals of answers."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
import numpy as np
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial import pipeline
from fairtrial.analyse.kinds import LEVELS
from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.config import RunOptions
from fairtrial.config.styles import style_file, styles
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case
from fairtrial.store import browsing
from fairtrial.tracks.optimisation.analysis import OptimisationReport, report_of
from fairtrial.tracks.optimisation.answer import read_answer
from fairtrial.tracks.optimisation.catalogue import ProblemSelection, baselines, select
from fairtrial.tracks.optimisation.figures import answer_gaps
from fairtrial.tracks.optimisation.pages.problems import find_known, own_problems
from fairtrial.tracks.optimisation.pages.solving import solve
from fairtrial.tracks.optimisation.reports import TITLES, render_styles
from fairtrial.tracks.optimisation.reports.html import body
from fairtrial.tracks.optimisation.scorer import problem_of
from fairtrial.tracks.optimisation.solving import NotSolvedError
from fairtrial.tracks.optimisation.style_suite import StyleSuite
from fairtrial.tracks.optimisation.text import constraint_texts, statement
from fairtrial.web import files
from fairtrial.web.cache import LONG, patience
from fairtrial.web.result import run_links
from fairtrial.web.runs import has_scorer, run_line
from fairtrial.web.section import Link
from fairtrial.web.site import Site, attachment, form_view, go_to

_RECENT = 40
_MOST_ANSWERS = 200
_EVEN = (0.5, 0.5)
_AT_OPTIMUM = 1e-6  # normalised gap
_SIZES = (2, 5, 10, 50, 100)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")
_ONE_CASE = RunOptions(first=1)
_MEDIA = {
    "html": "text/html",
    "md": "text/markdown",
    "tex": "application/x-tex",
    "csv": "text/csv",
    "json": "application/json",
}


class OptimisationPages:
    """Pages about optimisation problems."""

    templates = Path(__file__).parent

    def __init__(self, site: Site) -> None:
        self._site = site
        site.before_visits.append(_builtin_problems)
        site.menu.append(("Optimisation", "/optimisation"))
        site.run_links.append(_styles_link)
        site.trial_parts.append(self._residuals)
        self.routes = [
            Route("/optimisation", self._list),
            Route("/optimisation/new", self._new, methods=["GET"]),
            Route("/optimisation/new", form_view(self._create), methods=["POST"]),
            Route("/optimisation/runs/{run}", self._run_row),
            Route("/optimisation/{problem}", self._problem),
            Route("/runs/{run}/styles", self._styles),
            Route("/runs/{run}/styles/result", self._styles_part),
            Route("/runs/{run}/styles/report.{form}", self._download),
        ]

    def _residuals(self, case: Case, trial: TrialRecord) -> Markup | None:
        found = residuals(case, trial.answer or "")
        return None if found is None else self._site.part("residuals.html.j2", residuals=found, case=case)

    def _runs(self) -> list[Run]:
        return [run for run in self._site.newest_runs(_RECENT) if has_scorer(run, "optimisation")]

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
            own=own_problems(self._site.folder),
            runs=[run_line(self._site, run, wait=0.0) for run in self._runs()],
        )

    def _run_row(self, request: Request) -> Response:
        """Show one run of the list once its numbers are computed."""
        run = self._site.run(request.path_params["run"])
        line = run_line(self._site, run, wait=LONG)
        return self._site.page(request, "parts/optimisation_run.html.j2", line={**line, "waits": False})

    def _problem(self, request: Request) -> Response:
        runs = self._runs()
        known = find_known(request.path_params["problem"], self._site.folder, runs)
        problem, baseline = known.problem, known.baseline
        answers: list[dict[str, Any]] = []
        for run in runs[:10]:
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
            source=known.source,
            baseline=baseline,
            answer="" if baseline is None else _as_json(baseline.as_answer()),
            answers=answers,
            headline=_problem_words([item["trial"] for item in answers]),
            gaps=answer_gaps(by_arm) if by_arm else "",
        )

    def _new(self, request: Request) -> Response:
        task = self._site.tasks.find(request.query_params.get("task", ""))  # its form could not be carried out
        if task is None:
            return self._new_page(request, {})
        return self._new_page(request, task.entered, "solving was cancelled" if task.stopping else task.error)

    def _new_page(self, request: Request, entered: dict[str, Any], problem: str = "") -> Response:
        return self._site.page(
            request,
            "new_styles.html.j2",
            own=own_problems(self._site.folder),
            styles=[(name, len(wordings)) for name, wordings in styles().items()],
            style_files=files.style_files(self._site.folder),
            sizes=_SIZES,
            entered=entered,
            problem=problem,
        )

    def _create(self, request: Request, form: FormData) -> Response:
        """Write the chosen suite into the folder and go to the page that estimates and starts it."""
        values = {name: [str(value) for value in form.getlist(name)] for name in form}
        try:
            return go_to(self._created(values))
        except NotSolvedError as error:
            key = _as_json(values)
            task = solve(self._site, error, lambda: self._created(values), key)
            task.entered, task.back = values, f"/optimisation/new?{urlencode({'task': task.id})}"
            return go_to(task.address)
        except FairtrialError as error:
            return self._new_page(request, values, str(error))

    def _created(self, values: dict[str, list[str]]) -> str:
        """Check and write the suite that a form describes; return the address of the page that starts it."""
        problems = [own.path for own in own_problems(self._site.folder)]
        suite = _chosen_suite(values, problems, files.style_files(self._site.folder))
        # What is wrong with the rest is said before anything is solved: baselines of built-in problems are known.
        known = msgspec.structs.replace(suite, problems=(), sizes=_SIZES[:1], difficulties=())
        for checked in (known, suite) if suite.problems else (suite,):
            pipeline.load_text(checked.text(), file=f"{suite.name}.yaml", folder=self._site.folder, options=_ONE_CASE)
        file = files.create(self._site.folder, f"{suite.name}.yaml", suite.text())
        return f"/new?{urlencode({'file': file})}"

    def _download(self, request: Request) -> Response:
        form = request.path_params["form"]
        if form not in TITLES:
            raise HTTPException(404)
        run = self._site.run(request.path_params["run"])
        report = self._report(run, _weights(request.query_params.get("weights", "")), wait=LONG)
        if report is None:
            raise FairtrialError("the report is still being computed: try again in a moment")
        headers = {"Content-Disposition": attachment(f"styles-{run.id}.{form}"), "X-Content-Type-Options": "nosniff"}
        return Response(render_styles(report, form), media_type=_MEDIA[form], headers=headers)

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
        run = self._site.run(request.path_params["run"])
        weights = _weights(request.query_params.get("weights", ""))
        styles = self._styles_of(run, weights, wait=LONG)
        return self._site.page(request, "parts/styles.html.j2", run=run.record, styles=styles)

    def _styles_of(self, run: Run, weights: tuple[float, float], *, wait: float) -> dict[str, Any] | None:
        """Return what the page of styles shows; None until it is computed."""
        try:
            report = self._report(run, weights, wait=wait)
        except FairtrialError as error:
            return {"error": str(error)}
        if report is None:
            return None
        entered = f"{weights[0]:g},{weights[1]:g}"
        return {"error": "", "body": body(report, run_links(run)), "forms": list(TITLES.items()), "weights": entered}

    def _report(self, run: Run, weights: tuple[float, float], *, wait: float) -> OptimisationReport | None:
        name = f"styles/{run.id}/{weights[0]:g}/{weights[1]:g}"
        return self._site.cache.get(name, [run], OptimisationReport, report_of, weights, wait=wait)


def _styles_link(run: Run) -> Link | None:
    return ("Prompt styles", f"/runs/{run.id}/styles") if has_scorer(run, "optimisation") else None


def _chosen_suite(values: dict[str, list[str]], own: list[str], style_files: list[str]) -> StyleSuite:
    """Return the suite that a form describes; only files that the form lists can be chosen."""
    targets = tuple(part for line in values.get("targets", []) for part in line.replace(",", " ").split())
    if not targets:
        raise FairtrialError("name at least one model, such as openai:gpt-6-luna or local:smollm2")
    named = [name for name in values.get("style", []) if not style_file(name)]
    styles = (*named, *(path for path in values.get("style_file", []) if path in style_files))
    if not styles:
        raise FairtrialError("choose at least one style")
    repeats = "".join(values.get("repeats", [])) or "5"
    if not repeats.isdigit() or int(repeats) < 1:
        raise FairtrialError("the number of answers must be a whole number of 1 or more")
    name = "".join(values.get("name", [])).strip() or "styles"
    if not _NAME.fullmatch(name):
        raise FairtrialError("the name may have letters, digits, dots, dashes and underscores")
    return StyleSuite(
        name=name,
        targets=targets,
        styles=styles,
        match_length=bool(values.get("match_length")),
        problems=tuple(path for path in values.get("problem", []) if path in own),
        sizes=tuple(int(n) for n in values.get("n", []) if n.isdigit()),
        difficulties=tuple(level for level in values.get("difficulty", []) if level in LEVELS),
        repeats=int(repeats),
    )


def _as_json(value: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _address(run: Run, place: tuple[int, int, int]) -> str:
    return f"/runs/{run.id}/cases/{place[0] + 1}/{place[1] + 1}/{place[2] + 1}"


def _problem_words(trials: list[TrialRecord]) -> str:
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
    problems = select(ProblemSelection())
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
