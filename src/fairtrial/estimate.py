"""What a run will ask and what it may cost, before anything is asked."""

from __future__ import annotations

import msgspec

from fairtrial.config import Suite
from fairtrial.core import registry
from fairtrial.engine.prices import FREE, find_price


class ArmEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """One arm's size; `most_usd` is None where the price is unknown."""

    arm: str
    trials: int
    prompt_tokens: int
    most_usd: float | None


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A run's size. Token counts are a guess (4 characters each); costs assume answers of full length."""

    cases: int
    trials: int
    arms: list[ArmEstimate]
    most_usd: float | None


def estimate(suite: Suite) -> Estimate:
    """The size of a run of this suite."""
    trials, characters = [0] * len(suite.arms), [0] * len(suite.arms)
    completion = [0] * len(suite.arms)
    for case in suite.cases():
        for index, arm in enumerate(suite.arms):
            repeats = arm.repeats_of(case)
            trials[index] += repeats
            characters[index] += repeats * (len(case.input) + len(arm.condition.system))
            completion[index] += repeats * (arm.params_of(case).get("max_tokens") or 0)
    arms = []
    for index, arm in enumerate(suite.arms):
        priced = registry.load("targets", arm.target.kind).priced
        price = find_price(arm.target, suite.settings.prices) if priced else FREE
        tokens = characters[index] // 4
        most = None if price is None else price.most(tokens, completion[index])
        arms.append(ArmEstimate(arm=arm.name, trials=trials[index], prompt_tokens=tokens, most_usd=most))
    known = [arm.most_usd for arm in arms if arm.most_usd is not None]
    total = sum(known) if len(known) == len(arms) else None
    return Estimate(cases=suite.case_count, trials=sum(trials), arms=arms, most_usd=total)
