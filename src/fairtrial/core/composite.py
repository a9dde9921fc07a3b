"""Helpers for scorers that combine other scorers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.accepted import case_problems, score_answer
from fairtrial.core.experiment import Case
from fairtrial.core.file import File
from fairtrial.core.judge import Judgement
from fairtrial.core.options import build_scorer, scorer_problems
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Scorer

PartSpec = str | dict[str, Any]


def check_parts(parts: Sequence[PartSpec], case: Case, folder: Path) -> Iterator[str]:
    """Yield the problems of all parts."""
    for part in parts:
        problems = [message for _, message in scorer_problems(part)]
        yield from problems
        if not problems:
            yield from case_problems(build_scorer(part), case, folder)


def any_needs_judge(parts: Sequence[PartSpec]) -> bool:
    """Return whether any part needs a judge."""
    return any(build_scorer(part).needs_judge() for part in parts)


def marking_parts(spec: PartSpec) -> list[Scorer]:
    """Return the scorers inside a scorer whose judges give marks, or the scorer itself if it is one."""
    scorer = build_scorer(spec)
    if scorer.prompt_hash("") is not None:
        return [scorer]
    parts = [getattr(part, "scorer", part) for part in getattr(scorer, "scorers", ())]
    return [marking for part in parts for marking in marking_parts(part)]


async def score_parts(parts: Sequence[PartSpec], context: ScoreContext) -> list[tuple[str, Score]] | Unscored:
    """Return the name and score of every part, or the first Unscored result."""
    scores: list[tuple[str, Score]] = []
    for part in parts:
        name = part if isinstance(part, str) else str(part["type"])
        result = await score_answer(build_scorer(part), context)
        if isinstance(result, Unscored):
            judgements = (*judgements_of(scores), *result.judgements)
            return msgspec.structs.replace(result, message=f"{name}: {result.message}", judgements=judgements)
        scores.append((name, result))
    return scores


def judgements_of(parts: list[tuple[str, Score]]) -> tuple[Judgement, ...]:
    """Return all judgements behind the parts' scores."""
    return tuple(judgement for _, score in parts for judgement in score.judgements)


def files_of(parts: list[tuple[str, Score]]) -> tuple[File, ...]:
    """Return the files kept while the parts were scored, each name once."""
    return tuple({file.name: file for _, score in parts for file in score.files}.values())


def as_details(parts: list[tuple[str, Score]]) -> dict[str, Any]:
    """Return the parts' scores in the form stored with the combined score."""
    return {"parts": [{"scorer": name, "value": score.value, "notes": score.notes} for name, score in parts]}
