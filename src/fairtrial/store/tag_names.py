"""Which names runs may be tagged with."""

from __future__ import annotations

import re

from fairtrial.core.errors import FairtrialError
from fairtrial.store.store import Store

_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}")


def check_tag(store: Store, name: str) -> None:
    """Refuse a name that could be confused with an id or is hard to type."""
    if not _TAG.fullmatch(name) or name == "latest":
        raise FairtrialError(f"`{name}` is not a valid name: use up to 64 letters, digits, dots, dashes; not `latest`")
    if any(run.id.startswith(name) or (run.series_id or "").startswith(name) for run in store.candidates(name)):
        raise FairtrialError(f"`{name}` is the start of an existing id: choose another name")
