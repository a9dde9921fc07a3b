"""Numbers typed into forms, limited to what the command line accepts."""

from __future__ import annotations

import math
from typing import Any

from starlette.datastructures import FormData

from fairtrial.core.errors import FairtrialError

_MAX = 1e12
_MINIMA = {"repeats": 1, "concurrency": 1, "limit": 1, "first": 1, "runs": 1, "budget_usd": 0.0, "timeout": 0.001}


def number(form: FormData, name: str, *, whole: bool = True) -> Any:
    """Return a number from a form, or None if the field is empty."""
    text = str(form.get(name, "")).strip()
    return parse_number(text, name, whole=whole) if text else None


def parse_number(text: str, name: str, *, whole: bool) -> float | int:
    """Parse a number as the command line does: finite, and not below the minimum that makes sense."""
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        raise FairtrialError(f"{name} must be a {'whole ' if whole else ''}number, not `{text}`") from None
    minimum = _MINIMA.get(name)
    if not math.isfinite(value) or abs(value) > _MAX or (minimum is not None and value < minimum):
        bound = "" if minimum is None else f" of at least {minimum:g}"
        raise FairtrialError(f"{name} must be a number{bound}, not `{text}`")
    return value
