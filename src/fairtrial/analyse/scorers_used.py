"""Which scorers a run was scored with, and whose rubrics its judges were given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fairtrial.core.experiment import Arm
from fairtrial.store import Store
from fairtrial.store.outcomes import case_scorers
from fairtrial.store.records import RunRecord
from fairtrial.store.rows import decode
from fairtrial.store.scorings import scoring_choice

_WITH_RUBRIC, _OWN = "golden_judge", "fairtrial"


def scorers_used(store: Store, record: RunRecord, arms: Sequence[Arm]) -> list[dict[str, Any]]:
    """Return the scorers of a run: one for all cases after a rescore, else those of single cases and of the rest."""
    everywhere = scoring_choice(store, record.id, record.scoring).get("scorer")
    if everywhere:
        return [everywhere]
    own = case_scorers(store, record.plan_id)
    common = [arm.scorer for arm in arms] if None in own else []
    return [*common, *(decode(blob) for blob in own if blob)]


def scorer_label(scorer: dict[str, Any]) -> str:
    """Return the display name of a scorer: its name, and whose rubric it has if that is not ours."""
    others = [name for name in rubrics([scorer]) if name != _OWN]
    return f"{scorer['type']} (rubric: {', '.join(others)})" if others else str(scorer["type"])


def rubrics(scorers: Iterable[Any]) -> list[str]:
    """Return whose rubrics these scorers, and those inside them, give to a judge."""
    return sorted(set(_rubrics(scorers)))


def _rubrics(value: Any) -> Iterator[str]:
    if value == _WITH_RUBRIC:
        yield _OWN
    elif isinstance(value, dict) and value.get("type") == _WITH_RUBRIC:
        yield value.get("rubric") or _OWN
    elif isinstance(value, dict):
        yield from _rubrics(value.values())
    elif not isinstance(value, str) and isinstance(value, Iterable):
        for part in value:
            yield from _rubrics(part)
