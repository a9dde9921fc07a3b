"""Where one begins: what is at work, the latest runs, the suites, and what can be used."""

from __future__ import annotations

import os

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.core.providers import KNOWN
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.web.desk import Desk
from fairtrial.web.files import suite_files


class Home:
    """The first page."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.routes = [Route("/", self._home)]

    def _home(self, request: Request) -> Response:
        records, total = browsing.runs_page(self._desk.store, RunQuery(), 0, 8)
        suites = suite_files(self._desk.folder)
        return self._desk.page(
            request,
            "home.html.j2",
            records=records,
            total=total,
            suites=suites[:8],
            suite_count=len(suites),
            keys=provider_keys(),
            folder=self._desk.folder.name,
        )


def provider_keys() -> list[tuple[str, str, bool]]:
    """(provider, variable, whether it is set): never the value."""
    found = []
    for name, provider in KNOWN.items():
        variable = provider.api_key.removeprefix("${").removesuffix("}")
        if variable and ":" not in variable:  # where a key has a default, none is needed
            found.append((name, variable, bool(os.environ.get(variable))))
    return found
