"""The code arena: the pages of several models for one prompt, side by side, during and after writing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.config import RunOptions
from fairtrial.core.errors import FairtrialError
from fairtrial.core.place import Place
from fairtrial.core.trust import running_code
from fairtrial.core.variables import display
from fairtrial.store.files import attachments
from fairtrial.store.records import RunRecord
from fairtrial.store.todo import status_of
from fairtrial.tracks.code_arena import prompts as code_arena
from fairtrial.web.entries import number
from fairtrial.web.grid import page_number
from fairtrial.web.lending import check_providers, lenders, lent_document
from fairtrial.web.live import event_stream
from fairtrial.web.runs import await_run, has_scorer
from fairtrial.web.section import Link
from fairtrial.web.site import Site, form_view
from fairtrial.webpage.browser import NoBrowserError, find_browser
from fairtrial.webpage.criteria import CRITERIA
from fairtrial.webpage.extract import PageStream, extract
from fairtrial.webpage.looking import is_unresponsive
from fairtrial.webpage.seal import SANDBOX

_INTERVAL = 0.7  # seconds between two events
_TAIL = 4000  # characters of the code that are shown while it is written


class Code:
    """Pages of the code arena."""

    templates = Path(__file__).parent

    def __init__(self, site: Site) -> None:
        self._site = site
        site.before_visits += [code_prompts, browser_problem]
        site.arena_parts.append(self._form)
        site.run_links.append(_pages_link)
        self.routes = [
            Route("/code", lambda request: RedirectResponse("/arena#code")),
            Route("/arena/pages", form_view(self._run), methods=["POST"]),
            Route("/runs/{run}/pages", self._pages),
            Route("/runs/{run}/pages/events", self._events),
        ]

    def _form(self, earlier: Sequence[RunRecord]) -> Markup:
        """Show the form that has pages written, and the runs that have some."""
        return self._site.part(
            "code_arena.html.j2",
            pages=earlier,
            prompts=code_prompts(),
            browser=browser_problem(),
            lenders=lenders(self._site, ""),
        )

    def _run(self, request: Request, form: FormData) -> Response:
        prompt = str(form.get("prompt", "")).strip()
        cases = [str(case) for case in form.getlist("case")]
        judge = str(form.get("judge", "")).strip() or None
        repeats = max(1, number(form, "repeats") or 1)
        targets = [name for line in form.getlist("targets") for name in str(line).replace(",", "\n").split()]
        lender, folder = str(form.get("suite", "")), self._site.folder
        if form.get("demo"):
            document = code_arena.demo_document(cases=cases or ["calculator", "kanban"], repeats=repeats)
            for target in document["targets"]:
                target["options"]["latency_ms"] = 3000  # leaves time to watch the pages being written
        elif not targets and not lender:
            raise FairtrialError("name the models that should write pages, one per line, or try the demo")
        elif not prompt and not cases:
            raise FairtrialError("describe what should be built, or choose one of the prompts")
        else:
            of: dict[str, Any] = {}
            if lender:
                of, folder = lent_document(self._site, lender)
            else:
                check_providers(self._site, [*targets, *([judge] if judge else [])])
            document = code_arena.arena_document(
                targets, prompt=prompt or None, judge=judge, cases=() if prompt else cases, repeats=repeats, of=of
            )
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
        options = RunOptions(budget_usd=number(form, "budget_usd", whole=False))
        with running_code():
            suite = pipeline.load_text(text, file="arena", folder=folder, options=options)
        return await_run(self._site.tasks.run(suite, view="/pages"))

    def _pages(self, request: Request) -> Response:
        """Show every arm's page for one prompt: live, as code and as screenshots, with its checks and judgements."""
        run = self._site.run(request.path_params["run"])
        position = min(page_number(request.query_params), run.plan.case_count) - 1
        case = run.store.cases(run.plan.id, position, 1)[0]
        shots = attachments(run.store, run.id, first=position, count=1)
        trials = dict(run.placed_trials(position, 1))
        sides = []
        for arm in run.plan_arms:
            repeats = [place for place in trials if place.arm == arm.position] or [Place(position, arm.position, 0)]
            sides += [self._side(request, run, place, trials.get(place), shots.get(place, {})) for place in repeats]
        return self._site.page(
            request,
            "pages.html.j2",
            path="/arena",
            run=run.record,
            case=case,
            position=position,
            count=run.plan.case_count,
            sides=sides,
            sandbox=SANDBOX,
            criteria=CRITERIA.items(),
            several=len(run.plan_arms) > 1,
        )

    def _side(
        self, request: Request, run: Run, place: Place, trial: TrialRecord | None, shots: dict[str, str]
    ) -> dict[str, Any]:
        details = (trial.details if trial else None) or {}
        html = extract(trial.answer).html if trial and trial.answer else None
        hangs = is_unresponsive(details)
        return {
            "arm": run.plan_arms[place[1]].name,
            "place": place,
            "trial": trial,
            "code": html,
            "preview": self._site.preview(request, html) if html and not hangs else None,
            "hangs": hangs,
            "page": details.get("page"),
            "shots": shots,
            "verdicts": run.judgements_at(place) if trial else [],
        }

    # -- while pages are being written -----------------------------------------------------------

    async def _events(self, request: Request) -> Response:
        run_id = request.path_params["run"]
        position = page_number(request.query_params) - 1
        await asyncio.to_thread(self._site.run, run_id)
        return event_stream(self._stream(request, run_id, position))

    async def _stream(self, request: Request, run_id: str, position: int) -> AsyncIterator[bytes]:
        """Stream what can be shown of each page so far; a finished arm is announced once."""
        pages = GrowingPages()
        yield b"retry: 1000\n\n"
        while True:
            state = await asyncio.to_thread(self._state, request, run_id, position, pages)
            yield b"data: " + msgspec.json.encode(state) + b"\n\n"
            if state["status"] != "running":
                return
            await asyncio.sleep(_INTERVAL)

    def _state(self, request: Request, run_id: str, position: int, pages: GrowingPages) -> dict[str, Any]:
        run = self._site.run(run_id)
        task = self._site.tasks.of_run(run_id)
        growing = {
            (arm, repeat): (answer.text, answer.length)
            for (case, arm, repeat), answer in (list(task.answers.items()) if task else ())
            if case == position
        }
        # Read after the growing answers: one that is complete by now is then in one of the two.
        rows = list(run.store.trial_rows(run.id, run.record.scoring, first=position, count=1))
        stored = {(row["arm_position"], row["repeat"]): row for row in rows}
        sides = [
            self._growth(request, key, text, length, pages.grown(key, text))
            for key, (text, length) in growing.items()
            if key not in stored
        ]
        answered = {key: display(row["answer"] or "") for key, row in stored.items() if status_of(row) == "answered"}
        for key, text in answered.items():
            if (html := pages.finished(key, text)) is not None:
                sides.append(self._growth(request, key, text, len(text), html))
        return {
            "status": run.status,
            "ended": sorted(key for key in stored if key not in answered),
            "answered": sorted(answered),
            "sides": sides,
        }

    def _growth(
        self, request: Request, key: tuple[int, int], text: str, length: int, html: str | None
    ) -> dict[str, Any]:
        address = self._site.preview(request, html) if html else None
        return {"arm": key[0], "repeat": key[1], "length": length, "preview": address, "tail": text[-_TAIL:]}


class GrowingPages:
    """The growing pages as one visitor has seen them."""

    def __init__(self) -> None:
        self._streams: dict[tuple[int, int], tuple[PageStream, str]] = {}
        self._finished: set[tuple[int, int]] = set()

    def grown(self, key: tuple[int, int], text: str) -> str | None:
        """Return the page so far if more of it can be shown, else None."""
        stream, before = self._streams.get(key, (PageStream(), ""))
        if not text.startswith(before):  # a new attempt has begun
            stream, before = PageStream(), ""
        html = stream.feed(text[len(before) :])
        self._streams[key] = (stream, text)
        return html

    def finished(self, key: tuple[int, int], answer: str) -> str | None:
        """Return the page of a complete answer, once; None if the visitor has seen it."""
        if key in self._finished:
            return None
        self._finished.add(key)
        self._streams.pop(key, None)
        return extract(answer).html


def _pages_link(run: Run) -> Link | None:
    return ("Pages side by side", f"/runs/{run.id}/pages") if has_scorer(run, "browser", "code_judge") else None


@cache
def code_prompts() -> list[tuple[str, str]]:
    """Return the built-in prompts: id and text."""
    return [(case["id"], case["input"]) for case in code_arena.cases()]


def browser_problem() -> str:
    """Return why pages cannot be checked in a browser here; empty if they can."""
    try:
        find_browser()
    except NoBrowserError as error:
        return str(error)
    return ""
