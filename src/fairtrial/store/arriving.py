"""Runs of which only a part is in this store yet: their reason says how they are completed, and until then nothing else
may work on them.
"""

from __future__ import annotations

from fairtrial.core.errors import FairtrialError
from fairtrial.store.records import RunRecord

COPYING = "being copied from another store: repeat `fairtrial store copy` to complete it"
IMPORTING = "being imported: import the same files again to complete it, or delete it"


def is_arriving(record: RunRecord) -> bool:
    """Return whether only a part of a run is here yet."""
    return record.reason in (COPYING, IMPORTING)


def check_arrived(record: RunRecord) -> None:
    """Refuse to work on a run of which only a part is here: what is missing would be asked and scored again."""
    if is_arriving(record):
        raise FairtrialError(f"run {record.id} is {record.reason}")
