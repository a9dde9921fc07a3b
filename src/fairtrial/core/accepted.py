"""Cases with several right answers, and cases with none: what every scorer has in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Scorer
from fairtrial.core.text import clipped

_MISSING = "`expected` is blank or missing, and `{name}` has nothing to hold an answer against: say what is right"
_LONGEST = 60


def case_problems(scorer: Scorer, case: Case, folder: Path) -> Iterator[str]:
    """What makes a case impossible to score."""
    if scorer.needs_expected() and not case.accepted:
        yield _MISSING.format(name=_name(scorer))
        return
    if isinstance(case.expected, tuple) and len(case.accepted) < len(case.expected):
        yield "one of the texts in `expected` is blank"
    found = (problem for one in _each(scorer, case) for problem in scorer.check(one, folder))
    yield from dict.fromkeys(found)


async def score_answer(scorer: Scorer, context: ScoreContext) -> Score | Unscored:
    """An answer's score: against each right answer, the best one counts, and the notes name it."""
    if scorer.needs_expected() and not context.accepted:
        return Unscored(kind="expected", message=_MISSING.format(name=_name(scorer)))
    cases = _each(scorer, context.case)
    if len(cases) == 1:
        return await scorer.score(msgspec.structs.replace(context, case=cases[0]))
    decisive = 0.0 if scorer.forbids() else 1.0  # no other answer can change that
    scores: list[tuple[str, Score]] = []
    unscored: Unscored | None = None
    for case in cases:
        result = await scorer.score(msgspec.structs.replace(context, case=case))
        if isinstance(result, Unscored):
            unscored = unscored or result
            continue
        scores.append((case.accepted[0], result))
        if result.value == decisive:
            break
    if unscored is not None and (not scores or scores[-1][1].value != decisive):
        return unscored
    text, score = (min if scorer.forbids() else max)(scores, key=lambda item: item[1].value)
    note = f"against {clipped(text, _LONGEST)!r}, one of {len(cases)} accepted"
    return msgspec.structs.replace(score, notes=f"{score.notes} ({note})" if score.notes else note)


def _each(scorer: Scorer, case: Case) -> list[Case]:
    """The case once for each right answer, unless the scorer wants to see all of them."""
    if scorer.sees_all or not isinstance(case.expected, tuple):
        return [case]
    return [msgspec.structs.replace(case, expected=text) for text in case.expected if text.strip()] or [case]


def _name(scorer: Scorer) -> str:
    """A scorer's name in suites, as far as its class tells."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(scorer).__name__).lower()
