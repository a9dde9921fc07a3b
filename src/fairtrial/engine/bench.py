"""Call judges and embedders outside a run, through the same ladder as in a run."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from fairtrial.core.accepted import score_answer
from fairtrial.core.answer import Answer, Failure, Outcome, Request
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case, TargetSpec
from fairtrial.core.judge import Judge, Judgement, Panel, judge_key
from fairtrial.core.money import total
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Scorer, without_extract
from fairtrial.core.settings import JudgeSpec, PanelSpec, Settings
from fairtrial.core.target import Target
from fairtrial.core.workshop import Workshop
from fairtrial.engine.budget import Budget
from fairtrial.engine.ladder import Ladder, price_of
from fairtrial.engine.limits import Limiter
from fairtrial.judging.asking import ask_judge
from fairtrial.judging.calibration import Calibration, CalibrationSample, SampleResult, calibration, sample_result
from fairtrial.judging.pairs import Pair, pair_prompt
from fairtrial.providers.judge_models import judge_of


class Bench:
    """Judges and embedders that can be called outside a run, sharing one budget."""

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
        self.judges = tuple(judge_of(spec, self._ladder(spec.target).ask) for spec in judges)
        self._embedders = {name: self._ladder(spec) for name, spec in settings.embedders.items()}

    async def embed(self, name: str, text: str) -> Sequence[float] | Failure:
        """Return the embedding of a text."""
        outcome = await self._embedders[name].ask(embedding_request(name, text))
        return outcome.result if isinstance(outcome.result, Failure) else embedding_of(outcome.result)

    def _ladder(self, spec: TargetSpec) -> Ladder:
        target, settings = self._targets[spec.id], self._settings
        max_calls = min(settings.concurrency, target.most_at_once or settings.concurrency)
        return Ladder(
            target,
            settings,
            gate=self._gate,
            limiter=self._limiters.setdefault(target.lane, Limiter(max_calls, settings.retry.max_wait)),
            budget=self.budget,
            price=price_of(target, settings.prices),
        )


def embedding_request(name: str, text: str) -> Request:
    """Return the request for the embedding of a text."""
    return Request(trial_id=name, case_id="", input=text, stream=False, params={"max_tokens": 1}, embed=True)


def embedding_of(answer: Answer) -> array[float]:
    """Return the embedding that a model answered with."""
    return array("d", msgspec.json.decode(answer.text, type=list[float]))


async def judge_pair(
    judge: Judge,
    pair: Pair,
    *,
    case_id: str,
    number: int = 0,
    instructions: str = "",
    fill: Callable[[str], str] = str,
) -> tuple[Judgement, Judgement]:
    """Have one judge compare two answers in both orders; `number` distinguishes pairs of the same case."""
    forward, backward = await asyncio.gather(
        *(
            ask_judge(
                judge,
                pair_prompt(pair, judge, swapped=swapped, instructions=instructions, fill=fill),
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
    samples: Sequence[CalibrationSample],
    settings: Settings,
    *,
    runs: int = 1,
    vars: Mapping[str, Any] | None = None,
    judged: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Have a judge score every sample `runs` times; `judged` is called with the verdicts so far and their total.

    `vars` are the values of templates in its instructions.
    """
    bench = Bench([judge], {judge.target.id: target}, settings)
    verdicts = _Verdicts([sample.id for sample in samples], runs, judged)
    panel = Panel(judges=tuple(map(verdicts.counted, bench.judges)), how=PanelSpec(judgements=runs))
    judgements: list[Judgement] = []
    reading = without_extract(scorer)  # a sample's answer is what the judge should see

    async def score_sample(sample: CalibrationSample) -> SampleResult:
        case = Case(id=sample.id, input=sample.question, expected=sample.expected)
        context = ScoreContext(response=sample.answer, case=case, vars=vars or {}, panel=panel, workshop=workshop)
        result = await score_answer(reading, context)
        judgements.extend(result.judgements)
        verdicts.complete(sample.id)
        return sample_result(sample, _scores_of_judgements(result))

    async with Workshop() as workshop:
        results = await asyncio.gather(*map(score_sample, samples))
    for judgement in judgements:
        if judgement.failure_kind not in (None, "verdict"):  # the call failed, which says nothing about the judge
            raise FairtrialError(
                f"the judge {judge.name} could not be called ({judgement.failure_message}); nothing was stored"
            )
    return calibration(
        results,
        judge=judge.name,
        judge_key=judge_key(judge),
        prompt_hash=scorer.prompt_hash(judge.instructions) or "",
        runs=runs,
        created_at=time.time(),
        calls=sum(judgement.asked for judgement in judgements),
        cost_usd=total(judgement.cost for judgement in judgements).usd,
    )


class _Verdicts:
    """How many verdicts there are, counted call by call, since a slow judge takes minutes for a sample."""

    def __init__(self, samples: Sequence[str], each: int, tell: Callable[[int, int], None] | None) -> None:
        self._each, self._tell = each, tell
        self._replied: dict[str, set[str]] = {sample: set() for sample in samples}
        self._complete: set[str] = set()
        self._say()

    def counted(self, judge: Judge) -> Judge:

        async def ask(request: Request) -> Outcome:
            outcome = await judge.ask(request)
            self._replied[request.case_id].add(request.trial_id)  # a verdict that is asked for again counts once
            self._say()
            return outcome

        return msgspec.structs.replace(judge, ask=ask)

    def complete(self, sample: str) -> None:
        """Count a sample as judged, whatever calls it took."""
        self._complete.add(sample)
        self._say()

    def _say(self) -> None:
        if self._tell is not None:
            done = (self._each if name in self._complete else len(ids) for name, ids in self._replied.items())
            self._tell(sum(done), self._each * len(self._replied))


def _scores_of_judgements(result: Score | Unscored) -> list[Score | Unscored]:
    if isinstance(result, Unscored):
        return [result]
    values = [judgement.value for judgement in result.judgements]
    return [Score(value=value, notes=result.notes) for value in values if value is not None]
