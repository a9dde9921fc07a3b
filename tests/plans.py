"""Plans written at once, for tests that need one in a store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairtrial.core.experiment import Case
from fairtrial.core.variables import Variables
from fairtrial.store import Store
from fairtrial.store.plans import write_plan


def add_plan(store: Store, plan: dict[str, Any], cases: Iterable[Case], variables: Variables | None) -> None:
    """Write a plan with all its cases."""
    for _ in write_plan(store, plan, cases, variables):
        pass
