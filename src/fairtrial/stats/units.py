"""Types for numbers on a measurement scale, unlike counts, p-values, shares and effect sizes."""

from __future__ import annotations

from typing import Annotated

import msgspec

Measured = Annotated[float, msgspec.Meta(extra={"measured": True})]  # a score from 0 to 1, or a metric on its own scale
Interval = tuple[Measured, Measured]
