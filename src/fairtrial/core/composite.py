"""What scorers made of scorers share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.options import build_scorer, scorer_problems
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.suite import Case

PartSpec = str | dict[str, Any]


def check_parts(parts: Sequence[PartSpec], case: Case, folder: Path) -> Iterator[str]:
    """What is wrong with any of the parts."""
    for part in parts:
        problems = [message for _, message in scorer_problems(part)]
        yield from problems
        if not problems:
            yield from build_scorer(part).check(case, folder)


async def score_parts(parts: Sequence[PartSpec], context: ScoreContext) -> list[tuple[str, Score]] | Unscored:
    """Every part's name and score, or the first reason why a part has none."""
    scores = []
    for part in parts:
        name = part if isinstance(part, str) else str(part["type"])
        result = await build_scorer(part).score(context)
        if isinstance(result, Unscored):
            return msgspec.structs.replace(result, message=f"{name}: {result.message}")
        scores.append((name, result))
    return scores


def as_details(parts: list[tuple[str, Score]]) -> dict[str, Any]:
    """The parts' scores as stored beside the whole."""
    return {"parts": [{"scorer": name, "value": score.value, "notes": score.notes} for name, score in parts]}
