"""Scoring of cases with several accepted answers, or with none; shared by all scorers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Scorer
from fairtrial.core.text import clipped

_MISSING = "`expected` is blank or missing, but `{name}` compares answers with it: add the right answer"
_MAX_QUOTED = 60


def case_problems(scorer: Scorer, case: Case, folder: Path) -> Iterator[str]:
    """Yield the reasons why a case cannot be scored."""
    if scorer.needs_expected() and not case.accepted:
        yield _MISSING.format(name=_name(scorer))
        return
    if isinstance(case.expected, tuple) and len(case.accepted) < len(case.expected):
        yield "one of the texts in `expected` is blank"
    variants = _split_accepted(scorer, case)
    problems = (problem for variant in variants for problem in scorer.check(variant, folder))
    yield from dict.fromkeys(problems)


async def score_answer(scorer: Scorer, context: ScoreContext) -> Score | Unscored:
    """Score an answer against each accepted answer; the best score counts, and the notes say which one it was."""
    if scorer.needs_expected() and not context.accepted:
        return Unscored(kind="expected", message=_MISSING.format(name=_name(scorer)))
    cases = _split_accepted(scorer, context.case)
    if len(cases) == 1:
        return await scorer.score(msgspec.structs.replace(context, case=cases[0]))
    decisive = 0.0 if scorer.forbids() else 1.0  # no other accepted answer can change the result
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
    note = f"against {clipped(text, _MAX_QUOTED)!r}, one of {len(cases)} accepted answers"
    return msgspec.structs.replace(score, notes=f"{score.notes} ({note})" if score.notes else note)


def _split_accepted(scorer: Scorer, case: Case) -> list[Case]:
    """Return one copy of the case per accepted answer, or the case itself if the scorer sees all of them at once."""
    if scorer.sees_all or not isinstance(case.expected, tuple):
        return [case]
    return [msgspec.structs.replace(case, expected=text) for text in case.expected if text.strip()] or [case]


def _name(scorer: Scorer) -> str:
    """Derive a scorer's name in suites from its class name."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(scorer).__name__).lower()
