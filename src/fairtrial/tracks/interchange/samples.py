"""Samples of other tools in the words of a plan and its trials: arms, cases, outcomes, scores."""

from __future__ import annotations

import msgspec

from fairtrial.core.answer import Answer, Outcome
from fairtrial.core.experiment import Arm, Case, Condition, TargetSpec
from fairtrial.core.money import Cost
from fairtrial.core.score import Scale, Score
from fairtrial.foreign.results import Contestant, Question, Sample
from fairtrial.store import rows

_OF_ANSWER = tuple(set(Answer.__struct_fields__) & set(Sample.__struct_fields__) - {"cost_usd"})  # an outcome's


def score_of(value: float, scale: Scale, notes: str) -> Score:
    """Return a value on a scale as a score."""
    worst, best = scale
    assert worst is not None and best is not None  # it was checked against its scale before
    return Score(value=(value - worst) / (best - worst), raw=value, max=best, notes=notes)


def arm_of(contestant: Contestant, position: int, tool: str) -> Arm:
    """Return an arm of another tool."""
    target = TargetSpec(
        id=contestant.name,
        kind="imported",
        provider=contestant.provider or tool,
        model=contestant.model or contestant.name,
    )
    prompts = (contestant.prompt,) if contestant.prompt else ()
    condition = Condition(name=contestant.condition, system=contestant.system, prompts=prompts)
    params = contestant.params or {}
    return Arm(
        name=contestant.name,
        target=target,
        condition=condition,
        params=params,
        scorer={"type": "imported"},
        position=position,
    )


def case_of(question: Question, position: int) -> Case:
    """Return a question as a case."""
    return Case(
        id=question.id,
        input=rows.clean(question.input),
        expected=question.expected,
        weight=question.weight,
        tags=question.tags,
        category=question.category,
        difficulty=question.difficulty,
        cluster=question.cluster,
        metadata=question.metadata or None,
        position=position,
    )


def outcome_of(sample: Sample) -> Outcome:
    """Return how a sample ended, as the outcome of a trial."""
    cost = sample.cost_usd
    known = Cost(known=cost, charged=cost) if cost is not None and 0 <= cost < 1e9 else Cost(unknown=1)
    result = sample.failure or Answer(text=sample.answer or "", **{name: getattr(sample, name) for name in _OF_ANSWER})
    if sample.failure is not None:
        result = msgspec.structs.replace(sample.failure, usage=sample.usage, trace=sample.trace)
    return Outcome(
        result=result,
        attempts=1 + len(sample.tried),
        cost=known,
        waited_ms=sample.waited_ms,
        tried=sample.tried,
        started_at=sample.started_at or 0.0,
    )
