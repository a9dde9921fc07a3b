"""The environment of every page that is made from templates: of the web pages, the report and the site.

What they share is in `present/sections/`: `NUMBER_NAME.html.j2` is a section of a run's result, and is shown in the
order of the numbers; the other files are parts of sections.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fairtrial.core.formatting import milliseconds, money, number, span
from fairtrial.present.words.limits import trial_limit
from fairtrial.text.printable import printable

_SHARED = Path(__file__).parent


def environment(folder: Path) -> Environment:
    """Return an environment with the templates of a folder and the shared ones; what they show is escaped."""
    loader = FileSystemLoader([folder, _SHARED])
    result = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_clean
    )
    result.filters.update(score=number, money=money, ms=milliseconds, when=_when, span=span, words=_with_code)
    result.filters.update(limit=trial_limit)
    result.globals.update(sections=lambda: _sections(loader), parts=())
    return result


def _sections(loader: FileSystemLoader) -> list[str]:
    folders = [Path(place) / "sections" for place in loader.searchpath]
    names = {path.name for folder in folders for path in folder.glob("[0-9]*.html.j2")}
    return [f"sections/{name}" for name in sorted(names)]


def _clean(value: Any) -> Any:
    """Remove control characters from a value shown by a template; Markup is our own HTML and stays."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _when(timestamp: float | None) -> Markup:
    """Return a time element; a script converts it to the reader's time zone."""
    if timestamp is None:
        return Markup("–")
    moment = datetime.fromtimestamp(timestamp, UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(moment.isoformat(), moment.strftime("%Y-%m-%d %H:%M"))


def _with_code(text: str) -> Markup:
    """Return a message as HTML, with the parts between backquotes as code."""
    parts = printable(str(text)).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 and number < len(parts) - 1 else part
        for number, part in enumerate(parts)
    )
