"""Problems that must be solved before a page can go on: a page of their own shows how far that is, and can stop it.

No request solves anything (`NoSolving`). One that needs a baseline which is missing starts a task that solves it, if
someone ordered it; whoever only looks at a page is asked whether to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from fairtrial.tracks.optimisation.cases import CACHE
from fairtrial.tracks.optimisation.catalogue import baselines
from fairtrial.tracks.optimisation.certify import check_solved
from fairtrial.tracks.optimisation.solving import NotSolvedError, later
from fairtrial.web.site import Site, form_view, go_to
from fairtrial.web.tasks import Task

_MOST_ORDERS = 100  # pages on which somebody may still say that problems be solved


class NoSolving:
    """Keeps requests from solving: whoever waits for a page does not wait for a solver."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        later.set(True)
        await self._app(scope, receive, send)


class Solving:
    """Pages about problems that are being solved."""

    around = (NoSolving,)

    def __init__(self, site: Site) -> None:
        self._site = site
        self._orders: dict[str, Callable[[], Task]] = {}  # what is solved if somebody says so
        self.errors = {NotSolvedError: self._unsolved}
        self.routes = [
            Route("/solving/{task}", self._show),
            Route("/solving/{order}/start", form_view(self._begin), methods=["POST"]),
            Route("/solving/{task}/stop", form_view(self._stop), methods=["POST"]),
        ]

    def _task(self, request: Request) -> Task:
        task = self._site.tasks.find(request.path_params["task"])
        if task is None or task.what != "solving":
            raise HTTPException(404)
        return task

    def _show(self, request: Request) -> Response:
        """Show how far it is; once everything is solved, go on."""
        task = self._task(request)
        if task.ended.is_set() and not task.error:
            return go_to(task.result)
        return self._site.page(request, "solving.html.j2", task=task, seconds=task.seconds)

    def _begin(self, request: Request, _: FormData) -> Response:
        order = self._orders.get(request.path_params["order"])
        if order is None:
            raise HTTPException(404)
        return go_to(order().address)

    def _stop(self, request: Request, _: FormData) -> Response:
        task = self._task(request)
        task.stop()
        return go_to(task.back)

    def _unsolved(self, request: Request, error: Exception) -> Response:
        """Answer a request that needs problems solved: with the page that waits for them, and then returns."""
        assert isinstance(error, NotSolvedError)
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"error": str(error)}, 409)
        back = _own_referer(request)
        address = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        wanted = address if request.method == "GET" else back

        def order() -> Task:
            task = solve(self._site, error, lambda: wanted, key=wanted)
            task.back = back
            return task

        if request.method != "GET":
            return go_to(order().address)
        name = hashlib.sha256(wanted.encode()).hexdigest()[:16]
        self._orders.pop(name, None)
        self._orders[name] = order
        for oldest in list(self._orders)[:-_MOST_ORDERS]:
            del self._orders[oldest]
        return self._site.page(request, "to_solve.html.j2", order=name, problems=error.problems, back=back)


def solve(site: Site, wanted: NotSolvedError, then: Callable[[], str], key: str) -> Task:
    """Solve problems, and then do what has waited for it; its result is the address at which that goes on."""
    problems = wanted.problems
    task = Task("solving", problems[0].id if len(problems) == 1 else f"{len(problems)} problems")
    task.page, task.key, task.total = "/solving", key, len(problems)

    def solved(done: int, _: int) -> None:
        task.done = done

    def work() -> str:
        limits: dict[str, Any] = {"time_limit": wanted.time_limit, "stopped": lambda: task.stopping}
        for baseline in baselines(problems, CACHE, watch=solved, **limits):
            check_solved(baseline)
        return then()

    return site.tasks.work(task, work)


def _own_referer(request: Request) -> str:
    own, referer = f"{request.url.scheme}://{request.url.netloc}", request.headers.get("referer", "")
    return referer.removeprefix(own) if referer.startswith(f"{own}/") else "/"
