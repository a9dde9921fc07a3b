"""Of how many arms every pair is compared: the work, and what people can take in, grow with their square."""

from __future__ import annotations

MOST_ARMS = 60
MOST_RATED = 1000  # arms that are rated from votes and verdicts: the work grows with their cube


def is_large(pairs: int) -> bool:
    """Return whether there are too many pairs to work out every one of them, as Holm's procedure needs."""
    return pairs > MOST_ARMS * (MOST_ARMS - 1) // 2


def adjustment(pairs: int) -> str:
    """Return the procedure by which the verdicts on this many pairs hold together."""
    return "Bonferroni" if is_large(pairs) else "Holm"
