"""Checks that a budget can be enforced: prices must be known, and replies limited."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Arm, TargetSpec
from fairtrial.core.options import read
from fairtrial.core.settings import Settings, target_specs
from fairtrial.providers.prices import find_price


def check_prices(arms: Sequence[Arm], settings: Settings) -> None:
    """Raise if the budget cannot be enforced."""
    if settings.budget_usd is None:
        return
    paid = {spec.id: spec for spec in target_specs(arms, settings) if _needs_price(spec)}
    unknown = sorted(name for name, spec in paid.items() if find_price(spec, settings.prices) is None)
    if unknown:
        raise FairtrialError(
            f"the budget cannot be enforced: the price of {', '.join(unknown)} is unknown; "
            "add it under `prices:` (USD per million tokens, `input` and `output`; 0 if it is free)"
        )
    unlimited = sorted({arm.name for arm in arms if arm.target.id in paid and not arm.params.get("max_tokens")})
    if unlimited:
        raise FairtrialError(
            f"the budget cannot be enforced: nothing limits the replies of {', '.join(unlimited)}; set `max_tokens`"
        )


def _needs_price(spec: TargetSpec) -> bool:
    cls = registry.load("targets", spec.kind)
    return cls.priced and not cls.tells_cost(read(cls.options_type, spec.options, []))
