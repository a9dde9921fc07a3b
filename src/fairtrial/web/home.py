"""The home page: running tasks, latest runs, suites and available API keys."""

from __future__ import annotations

import os

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.core.providers import known_providers
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.web.files import suite_files
from fairtrial.web.site import Site


class Home:
    """The home page."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [Route("/", self._home)]

    def _home(self, request: Request) -> Response:
        records, total = browsing.runs_page(self._site.store, RunQuery(), 0, 8)
        suites = suite_files(self._site.folder)
        return self._site.page(
            request,
            "home.html.j2",
            records=records,
            total=total,
            suites=suites[:8],
            suite_count=len(suites),
            keys=provider_keys(),
            folder=self._site.folder.name,
        )


def provider_keys() -> list[tuple[str, str, bool]]:
    """Return (provider, variable, whether it is set) for every API key, never its value."""
    keys = []
    for name, provider in known_providers().items():
        variable = provider.api_key.removeprefix("${").removesuffix("}")
        if variable and ":" not in variable:  # a key with a default is not needed
            keys.append((name, variable, bool(os.environ.get(variable))))
    return keys
