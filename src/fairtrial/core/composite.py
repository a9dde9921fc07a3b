"""Base class of scorers that combine other scorers, and what they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fairtrial.core.accepted import case_problems, score_answer
from fairtrial.core.experiment import Case
from fairtrial.core.extraction import Extraction
from fairtrial.core.ids import canonical_json
from fairtrial.core.judge import Judgement
from fairtrial.core.options import build_scorer, scorer_problems
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Scorer

PartSpec = str | dict[str, Any]


class Composite(Scorer, frozen=True, kw_only=True):
    """A scorer around others. Its `extract` is that of every part without one of its own."""

    sees_all: ClassVar[bool] = True  # each part picks the accepted answer that fits it best
    reads_text: ClassVar[bool] = False  # its parts do

    def parts(self) -> Sequence[PartSpec]:
        """Return its parts as they are written in the suite."""
        raise NotImplementedError

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        return _check_parts(self, case, folder)

    def _sound(self) -> Iterator[Scorer]:
        """Yield the parts that can be built; the others are reported by `check`."""
        return (build_scorer(part) for part in self.parts() if not scorer_problems(part))

    def needs_judge(self) -> bool:
        return any(part.needs_judge() for part in self._sound())

    def needs_workspace(self) -> bool:
        return any(part.needs_workspace() for part in self._sound())

    def judges(self) -> frozenset[str]:
        return frozenset(name for part in self._sound() for name in part.judges())

    def judge_calls(self, judge: str) -> int:
        return sum(part.judge_calls(judge) for part in self._sound())

    def embedders(self) -> frozenset[str]:
        return frozenset(name for part in self._sound() for name in part.embedders())

    def sees_refusals(self) -> bool:
        return any(part.sees_refusals() for part in built_parts(self))


def built_parts(scorer: Composite) -> list[Scorer]:
    """Return the parts of a scorer."""
    return [built_part(scorer, part) for part in scorer.parts()]


def built_part(scorer: Composite, part: PartSpec) -> Scorer:
    """Return one part of a scorer."""
    return _built(canonical_json([part, scorer.extract]))


@lru_cache(maxsize=512)
def _built(key: bytes) -> Scorer:
    part, extract = msgspec.json.decode(key)
    scorer = build_scorer(part)
    if extract is None or scorer.extract is not None:
        return scorer
    return msgspec.structs.replace(scorer, extract=msgspec.convert(extract, Extraction))


def _check_parts(scorer: Composite, case: Case, folder: Path) -> Iterator[str]:
    for part in scorer.parts():
        problems = [message for _, message in scorer_problems(part)]
        yield from problems
        if not problems:
            yield from case_problems(built_part(scorer, part), case, folder)


def marking_parts(spec: PartSpec | Scorer) -> list[Scorer]:
    """Return the scorers inside a scorer whose judges give marks, or the scorer itself if it is one."""
    scorer = spec if isinstance(spec, Scorer) else build_scorer(spec)
    if scorer.prompt_hash("") is not None:
        return [scorer]
    parts = built_parts(scorer) if isinstance(scorer, Composite) else []
    return [marking for part in parts for marking in marking_parts(part)]


async def score_parts(scorer: Composite, context: ScoreContext) -> list[tuple[str, Score]] | Unscored:
    """Return the name and score of every part, or the first Unscored result."""
    scores: list[tuple[str, Score]] = []
    for spec, part in zip(scorer.parts(), built_parts(scorer), strict=True):
        name = spec if isinstance(spec, str) else str(spec["type"])
        result = await score_answer(part, context)
        if isinstance(result, Unscored):
            judgements = (*judgements_of(scores), *result.judgements)
            return msgspec.structs.replace(result, message=f"{name}: {result.message}", judgements=judgements)
        scores.append((name, result))
    return scores


def combined(value: float, notes: str, parts: list[tuple[str, Score]]) -> Score:
    """Return the score that comes of its parts' scores."""
    return Score(
        value=value,
        raw=value,
        notes=notes,
        details=as_details(parts),
        judgements=judgements_of(parts),
        files=tuple({file.name: file for _, score in parts for file in score.files}.values()),  # each name once
    )


def judgements_of(parts: list[tuple[str, Score]]) -> tuple[Judgement, ...]:
    """Return all judgements behind the parts' scores."""
    return tuple(judgement for _, score in parts for judgement in score.judgements)


def as_details(parts: list[tuple[str, Score]]) -> dict[str, Any]:
    """Return the parts' scores in the form stored with the combined score."""
    return {"parts": [_part_details(name, score) for name, score in parts]}


def _part_details(name: str, score: Score) -> dict[str, Any]:
    details = score.details or {}
    extracted = {"extracted": details["extracted"]} if "extracted" in details else {}
    return {"scorer": name, "value": score.value, "notes": score.notes, **extracted}
