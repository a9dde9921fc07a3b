"""Numbers as people type them into forms, held to what the command line takes."""

from __future__ import annotations

import math
from typing import Any

from starlette.datastructures import FormData

from fairtrial.core.errors import FairtrialError

_MOST = 1e12
_LEAST = {"repeats": 1, "concurrency": 1, "limit": 1, "runs": 1, "budget_usd": 0.0, "timeout": 0.001}


def number(form: FormData, name: str, *, whole: bool = True) -> Any:
    """A number from a form, or None where nothing was written."""
    given = str(form.get(name, "")).strip()
    return number_in(given, name, whole=whole) if given else None


def number_in(text: str, name: str, *, whole: bool) -> float | int:
    """As the command line takes it: finite, and not below what makes sense."""
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        raise FairtrialError(f"{name} is a {'whole ' if whole else ''}number, not `{text}`") from None
    least = _LEAST.get(name)
    if not math.isfinite(value) or abs(value) > _MOST or (least is not None and value < least):
        above = "" if least is None else f" of {least:g} at least"
        raise FairtrialError(f"{name} is a number{above}, not `{text}`")
    return value
