"""Which numbers are on the scale of what was measured; counts, p-values, shares and effect sizes have none."""

from __future__ import annotations

from typing import Annotated

import msgspec

Measured = Annotated[float, msgspec.Meta(extra={"measured": True})]  # a score from 0 to 1, or a metric on its own scale
Interval = tuple[Measured, Measured]
