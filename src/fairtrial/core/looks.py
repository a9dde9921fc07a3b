"""How many looks at its results a run plans: light, as help states it."""

from __future__ import annotations

LOOKS = 5  # where nothing says how many
MOST_LOOKS = 20
