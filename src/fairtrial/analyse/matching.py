"""Equal questions in runs of different tools: those without the same content are matched by their question, or id.

Runs of fairtrial share a case if input and expected answer are the same. Another tool may write the expected answer in
another way, or not record it, or not record the input: its cases are matched to the others' as far as that is sure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from fairtrial.store.outcomes import CaseFacts


def matched(plans: Sequence[Sequence[CaseFacts]]) -> tuple[list[list[CaseFacts]], int]:
    """Return the plans' cases with the same key where they are the same, and how many were matched that way."""
    result = [list(plan) for plan in plans]
    count = 0
    for number in range(1, len(result)):
        for feature in (_question, _id):
            count += _match(result[:number], result[number], feature)
    return result, count


def _match(earlier: Sequence[Sequence[CaseFacts]], cases: list[CaseFacts], feature: Callable[..., str | None]) -> int:
    """Give cases the keys of earlier ones that they share a feature with, if it points to one case on both sides."""
    own_keys = {case.key for case in cases}
    known: dict[str, set[str]] = {}
    blind = any(not case.question for plan in earlier for case in plan) or any(not case.question for case in cases)
    for plan in earlier:
        for case in plan:
            if case.key not in own_keys and (value := feature(case, blind=blind)) is not None:
                known.setdefault(value, set()).add(case.key)
    earlier_keys = {case.key for plan in earlier for case in plan}
    lone = [case for case in cases if case.key not in earlier_keys]
    counts = Counter(value for case in lone if (value := feature(case, blind=blind)) is not None)
    done = 0
    for number, case in enumerate(cases):
        value = feature(case, blind=blind) if case.key not in earlier_keys else None
        keys = known.get(value, set()) if value is not None else set()
        if len(keys) == 1 and value is not None and counts[value] == 1:
            cases[number] = case._replace(key=next(iter(keys)))
            done += 1
    return done


def _question(case: CaseFacts, *, blind: bool) -> str | None:
    return case.question


def _id(case: CaseFacts, *, blind: bool) -> str | None:
    """Ids count only where a question is not recorded: tools number their cases, so equal ids alone mean nothing."""
    return case.id if blind else None
