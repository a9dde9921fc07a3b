"""The parameters that a target received, in words."""

from __future__ import annotations

from typing import Any

from fairtrial.core.experiment import Arm


def sent_text(sent: dict[str, Any] | None, arm: Arm) -> str:
    """Describe the parameters sent. For old runs only the configured ones are known, not those that were sent."""
    if sent is not None:
        return _listed(sent) or "none sent"
    return f"not recorded; configured: {_listed(arm.params) or 'none'}"


def _listed(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in params.items())
