"""What scorers made of scorers share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.accepted import case_problems, score_answer
from fairtrial.core.experiment import Case
from fairtrial.core.judge import Judgement
from fairtrial.core.options import build_scorer, scorer_problems
from fairtrial.core.score import File, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Scorer

PartSpec = str | dict[str, Any]


def check_parts(parts: Sequence[PartSpec], case: Case, folder: Path) -> Iterator[str]:
    """What is wrong with any of the parts."""
    for part in parts:
        problems = [message for _, message in scorer_problems(part)]
        yield from problems
        if not problems:
            yield from case_problems(build_scorer(part), case, folder)


def any_needs_judge(parts: Sequence[PartSpec]) -> bool:
    """Whether one of the parts asks a judge."""
    return any(build_scorer(part).needs_judge() for part in parts)


def marking_parts(spec: PartSpec) -> list[Scorer]:
    """The scorers in a scorer whose judges give marks; itself, if it is one."""
    scorer = build_scorer(spec)
    if scorer.prompt_hash("") is not None:
        return [scorer]
    parts = [getattr(part, "scorer", part) for part in getattr(scorer, "scorers", ())]
    return [found for part in parts for found in marking_parts(part)]


async def score_parts(parts: Sequence[PartSpec], context: ScoreContext) -> list[tuple[str, Score]] | Unscored:
    """Every part's name and score, or the first reason why a part has none."""
    scores: list[tuple[str, Score]] = []
    for part in parts:
        name = part if isinstance(part, str) else str(part["type"])
        result = await score_answer(build_scorer(part), context)
        if isinstance(result, Unscored):
            verdicts = (*judgements_of(scores), *result.judgements)
            return msgspec.structs.replace(result, message=f"{name}: {result.message}", judgements=verdicts)
        scores.append((name, result))
    return scores


def judgements_of(parts: list[tuple[str, Score]]) -> tuple[Judgement, ...]:
    """Every judge's verdict behind the parts."""
    return tuple(judgement for _, score in parts for judgement in score.judgements)


def files_of(parts: list[tuple[str, Score]]) -> tuple[File, ...]:
    """Everything that was kept while the parts were scored, each name once."""
    return tuple({file.name: file for _, score in parts for file in score.files}.values())


def as_details(parts: list[tuple[str, Score]]) -> dict[str, Any]:
    """The parts' scores as stored beside the whole."""
    return {"parts": [{"scorer": name, "value": score.value, "notes": score.notes} for name, score in parts]}
