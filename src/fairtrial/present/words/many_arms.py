"""The sentence that a run of very many arms is shown with."""

from __future__ import annotations

from fairtrial.core.many_arms import MOST_ARMS


def against_first_words(pairs: int) -> str:
    """Say what is compared of very many arms."""
    return (
        f"Of more than {MOST_ARMS} arms, each is compared with the first one only: verdicts and intervals allow for "
        f"all {pairs:,} pairs (Bonferroni), and ranks say no more than these verdicts do. `fairtrial compare --arms A "
        "B` compares any two."
    )
