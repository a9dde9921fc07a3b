"""What an arm's target was sent: read from the record that is made when a run begins, and nowhere else."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.core.experiment import Arm
from fairtrial.store.store import RunRecord


def sent_params(record: RunRecord, arm: Arm) -> dict[str, Any] | None:
    """The parameters of an arm's requests; None in runs of versions that did not record them."""
    arms = msgspec.json.decode(record.context).get("arms")
    return None if arms is None else arms[arm.position]["sent"]


def sent_text(sent: dict[str, Any] | None, arm: Arm) -> str:
    """The same in words. Of an old run only the configuration is known, not what became of it."""
    if sent is not None:
        return _listed(sent) or "none are sent"
    return f"not recorded; configured were {_listed(arm.params) or 'none'}"


def _listed(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in params.items())
