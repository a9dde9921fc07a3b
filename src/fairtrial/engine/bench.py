"""Judges on their own: asked about samples or pairs of answers, with the same ladder as in a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from fairtrial.core.accepted import score_answer
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case, JudgeSpec, PanelSpec, Settings
from fairtrial.core.judge import Judge, Judgement, Panel, judge_key, judge_of
from fairtrial.core.money import total
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Scorer
from fairtrial.core.target import Target
from fairtrial.core.workshop import Workshop
from fairtrial.engine.budget import Budget
from fairtrial.engine.ladder import Ladder, price_of
from fairtrial.engine.limits import Limiter
from fairtrial.judging.asking import ask_judge
from fairtrial.judging.calibration import Calibration, Sample, SampleResult, calibration, sample_result
from fairtrial.judging.pairs import Pair, pair_prompt


class Bench:
    """Judges that can be asked outside a run, within one budget."""

    def __init__(
        self,
        judges: Sequence[JudgeSpec],
        targets: dict[str, Target],
        settings: Settings,
        *,
        budget: Budget | None = None,
    ) -> None:
        self.budget = budget or Budget(settings.budget_usd)
        self._settings, self._targets = settings, targets
        self._gate = asyncio.Semaphore(settings.concurrency)
        self._limiters: dict[str, Limiter] = {}
        self.judges = tuple(judge_of(spec, self._ladder(spec).ask) for spec in judges)

    def _ladder(self, spec: JudgeSpec) -> Ladder:
        target, settings = self._targets[spec.target.id], self._settings
        most = min(settings.concurrency, target.most_at_once or settings.concurrency)
        return Ladder(
            target,
            settings,
            gate=self._gate,
            limiter=self._limiters.setdefault(target.lane, Limiter(most, settings.retry.max_wait)),
            budget=self.budget,
            price=price_of(target, settings.prices),
        )


async def judge_pair(
    judge: Judge, pair: Pair, *, case_id: str, number: int = 0, instructions: str = ""
) -> tuple[Judgement, Judgement]:
    """One judge on two answers, in both orders; `number` tells pairs of the same case apart."""
    forward, backward = await asyncio.gather(
        *(
            ask_judge(
                judge,
                pair_prompt(pair, judge, swapped=swapped, instructions=instructions),
                case_id=case_id,
                number=2 * number + swapped,
            )
            for swapped in (False, True)
        )
    )
    return forward, backward


async def calibrate(
    judge: JudgeSpec,
    target: Target,
    scorer: Scorer,
    samples: Sequence[Sample],
    settings: Settings,
    *,
    runs: int = 1,
    judged: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Ask a judge about every sample, `runs` times each; `judged` hears how many are done, and of how many."""
    bench = Bench([judge], {judge.target.id: target}, settings)
    panel = Panel(judges=bench.judges, how=PanelSpec(judgements=runs))
    said: list[Judgement] = []
    done = 0

    async def try_on(sample: Sample) -> SampleResult:
        case = Case(id=sample.id, input=sample.question, expected=sample.expected)
        context = ScoreContext(response=sample.answer, case=case, panel=panel, workshop=workshop)
        result = await score_answer(scorer, context)
        said.extend(result.judgements)
        nonlocal done
        done += 1
        if judged is not None:
            judged(done, len(samples))
        return sample_result(sample, _one_by_one(result))

    async with Workshop() as workshop:
        results = await asyncio.gather(*map(try_on, samples))
    for judgement in said:
        if judgement.failure_kind not in (None, "verdict"):  # it could not be asked, which says nothing of it
            raise FairtrialError(
                f"the judge {judge.name} could not be asked ({judgement.failure_message}); nothing was stored"
            )
    return calibration(
        results,
        judge=judge.name,
        judge_key=judge_key(judge),
        prompt_hash=scorer.prompt_hash(judge.instructions) or "",
        runs=runs,
        created_at=time.time(),
        calls=sum(judgement.asked for judgement in said),
        cost_usd=total(judgement.cost for judgement in said).usd,
    )


def _one_by_one(result: Score | Unscored) -> list[Score | Unscored]:
    """Every judgement behind a score as a score of its own."""
    if isinstance(result, Unscored):
        return [result]
    values = [judgement.value for judgement in result.judgements]
    return [Score(value=value, notes=result.notes) for value in values if value is not None]
