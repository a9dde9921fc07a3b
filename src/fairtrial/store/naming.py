"""What a run may be called."""

from __future__ import annotations

import re

from fairtrial.core.errors import FairtrialError
from fairtrial.store.store import Store

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}")


def check_tag(store: Store, name: str) -> None:
    """Refuse a name that could not be told from an id, or not be typed."""
    if not _NAME.fullmatch(name) or name == "latest":
        raise FairtrialError(f"`{name}` cannot be a name: up to 64 letters, digits, dots, dashes; not `latest`")
    if any(found.id.startswith(name) or (found.series_id or "").startswith(name) for found in store.runs()):
        raise FairtrialError(f"`{name}` could be the beginning of an id: choose another name")
