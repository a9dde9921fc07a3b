"""The page about readability, its link on the page of a run, and its part of the page of a trial."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.plugins import Case, Link, Run, Site, TrialRecord
from fairtrial_readability.arms import by_arm, hardest_answers
from fairtrial_readability.ease import hardest, read

_NEWEST, _HARDEST = 20, 5


class Readability:
    """Pages about how easy answers are to read."""

    templates = Path(__file__).parent / "templates"  # named after the plug-in: all sections share one search path

    def __init__(self, site: Site) -> None:
        self._site = site
        site.menu.append(("Readability", "/readability"))
        site.run_links.append(_link)
        site.trial_parts.append(self._part)
        self.routes = [Route("/readability", self._list), Route("/readability/{run}", self._run)]

    def _list(self, request: Request) -> Response:
        return self._site.page(request, "readability.html.j2", runs=self._site.newest_runs(_NEWEST))

    def _run(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        answers = hardest_answers(run, _HARDEST)
        return self._site.page(request, "readability_run.html.j2", run=run, arms=by_arm(run), answers=answers)

    def _part(self, case: Case, trial: TrialRecord) -> Markup | None:
        if not trial.answer or not (reading := read(trial.answer)).words:
            return None
        return self._site.part("readability_trial.html.j2", reading=reading, hardest=hardest(trial.answer))


def _link(run: Run) -> Link | None:
    return "Readability", f"/readability/{run.id}"
