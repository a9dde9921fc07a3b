"""What a section of the web page is, and what it may use of the site: the contract of the door `pages`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import HTMLResponse
    from starlette.routing import BaseRoute

    from fairtrial.analyse.run import Run
    from fairtrial.analyse.stored_run import TrialRecord
    from fairtrial.core.experiment import Case

Link = tuple[str, str]  # what it says, and its address


@runtime_checkable
class Section(Protocol):
    """Pages of one kind. It is made with the site, and adds to its menu and to other pages there.

    It may also have `templates` (a folder), `errors` (answers to exceptions) and `around` (what wraps the application).
    """

    routes: Sequence[BaseRoute]


class Site(Protocol):
    """What sections may use of the site.

    Args:
        menu: The entries of the menu.
        run_links: Return a link that is shown on the page of a run, or None.
        trial_parts: Return a part of the page of a trial, or None.
        before_visits: Called once in the background at the start, for what takes long to load.
    """

    folder: Path
    menu: list[Link]
    run_links: list[Callable[[Run], Link | None]]
    trial_parts: list[Callable[[Case, TrialRecord], Markup | None]]
    before_visits: list[Callable[[], Any]]

    def run(self, name: str) -> Run:
        """Return a run by its id, as used in URLs."""

    def newest_runs(self, count: int) -> list[Run]:
        """Return the newest runs of the store, the newest first."""

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a template as an HTML response."""

    def part(self, template: str, **values: Any) -> Markup:
        """Render a template as a part of a page."""
