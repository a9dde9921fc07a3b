"""Where one begins: what is at work, the latest runs, the suites, and what can be used."""

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
    """The first page."""

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
    """(provider, variable, whether it is set): never the value."""
    found = []
    for name, provider in known_providers().items():
        variable = provider.api_key.removeprefix("${").removesuffix("}")
        if variable and ":" not in variable:  # where a key has a default, none is needed
            found.append((name, variable, bool(os.environ.get(variable))))
    return found
