"""A judge on its own: asked about samples, with the same ladder as in a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from fairtrial.core.ids import content_hash
from fairtrial.core.judge import Judge, Panel, family_of
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Scorer
from fairtrial.core.suite import Case, JudgeSpec, PanelSpec, Settings
from fairtrial.core.target import Target
from fairtrial.engine.budget import Budget
from fairtrial.engine.ladder import Ladder
from fairtrial.engine.limits import Limiter
from fairtrial.engine.prices import FREE
from fairtrial.judging.calibration import Calibration, Sample, SampleResult, calibration, sample_result


def judge_key(judge: JudgeSpec) -> str:
    """Which judge this is: the model, where and how it is asked."""
    return content_hash([judge.target.identity(), judge.params])[:16]


async def calibrate(
    judge: JudgeSpec,
    target: Target,
    scorer: Scorer,
    samples: Sequence[Sample],
    settings: Settings,
    *,
    runs: int = 1,
) -> Calibration:
    """Ask a judge about every sample, `runs` times each."""
    at_once = min(settings.concurrency, target.most_at_once or settings.concurrency)
    gate = asyncio.Semaphore(at_once)
    ladder = Ladder(target, settings, gate=gate, limiter=Limiter(at_once), budget=Budget(None), price=FREE)
    asked = Judge(
        name=judge.name,
        family=family_of(judge.target),
        ask=ladder.ask,
        params=judge.params,
        instructions=judge.instructions,
    )
    panel = Panel(judges=(asked,), how=PanelSpec(judgements=runs))

    async def judged(sample: Sample) -> SampleResult:
        case = Case(id=sample.id, input=sample.question, expected=sample.expected)
        context = ScoreContext(response=sample.answer, case=case, folder=Path(), panel=panel)
        result = await scorer.score(context)
        return sample_result(sample, _one_by_one(result))

    return calibration(
        await asyncio.gather(*map(judged, samples)),
        judge=judge.name,
        judge_key=judge_key(judge),
        prompt_hash=scorer.prompt_hash(judge.instructions) or "",
        runs=runs,
        created_at=time.time(),
    )


def _one_by_one(result: Score | Unscored) -> list[Score | Unscored]:
    """Every judgement behind a score as a score of its own."""
    if isinstance(result, Unscored):
        return [result]
    values = [judgement.value for judgement in result.judgements]
    return [Score(value=value, notes=result.notes) for value in values if value is not None]
