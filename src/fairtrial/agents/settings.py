"""Settings of agents: ours, and what a suite adds to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(ours: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those of a suite, key by key; a suite's own value wins."""
    both = {name for name in added if isinstance(added[name], Mapping) and isinstance(ours.get(name), Mapping)}
    return {**ours, **added, **{name: merged(ours[name], added[name]) for name in both}}
