"""Questions that several cases ask: such cases are not independent, whatever their ids."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.core.experiment import Arm, Case
from fairtrial.core.ids import canonical_json

_READ_COLUMNS = ("python", "command")  # kinds of targets that are given the columns of a case


class Questions:
    """Says what a case asks. The columns of a dataset are part of it only where something reads them."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        self._columns = any(
            arm.condition.templates or arm.condition.function or arm.target.kind in _READ_COLUMNS for arm in arms
        )

    def key(self, case: Case) -> bytes | None:
        """Return everything that a target is given with a case; None if the case says that it belongs to a cluster, or
        if its question is not known."""
        more = {name: value for name, value in (case.metadata or {}).items() if name != "columns" or self._columns}
        given = [case.input.strip(), case.turns, case.vars, case.attach, more]
        if case.cluster is not None or not any(given):
            return None
        return canonical_json([*given, case.targets, case.conditions])


def repeated_words(repeated: int, cases: int) -> str:
    """Say what follows from cases that repeat a question."""
    return (
        f"{repeated:,} of {cases:,} cases repeat the question of another one word for word, and count as if they were "
        "independent, so that intervals are too narrow: `cluster_by: question` makes them one cluster each; or ask it "
        "once and set `repeats`"
    )
