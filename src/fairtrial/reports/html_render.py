"""Pages that need nothing but themselves: style and script are inside, and a policy allows no other and no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from fairtrial.present import charts
from fairtrial.present.charts.svg import safe
from fairtrial.present.templates import environment

_FOLDER = Path(__file__).parent / "html_page"
_MARK = (
    '<svg viewBox="0 0 24 24" aria-hidden="true">'
    '<path d="M2 7v10M22 7v10M2 12h20"/><circle cx="14" cy="12" r="5.5"/></svg>'
)


def render(template: str, *, files: bool = False, **values: Any) -> str:
    """Return a page. With `files`, it may also load scripts and pictures next to it."""
    style, script = _style(), _script()
    common: Mapping[str, Any] = {
        "style": safe(style),
        "script": safe(script),
        "policy": policy(style, script, files=files),
        "mark": safe(_MARK),
        "icon": _icon(),
        "preview": None,
    }
    return _environment().get_template(template).render({**common, **values})


def policy(style: str, script: str, *, files: bool = False) -> str:
    """Return the content security policy of a page with this style and this script."""
    beside = " 'self'" if files else ""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'{beside}; "
        f"img-src data:{beside}; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _style() -> str:
    return charts.style() + (_FOLDER / "report.css").read_text("utf-8")


@cache
def _script() -> str:
    return charts.script() + (_FOLDER / "report.js").read_text("utf-8")


@cache
def _icon() -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode((charts.FOLDER / 'icon.svg').read_bytes()).decode()}"


@cache
def _environment() -> Environment:
    return environment(_FOLDER)
