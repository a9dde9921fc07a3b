"""Estimates of the size and cost of a run before it starts."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import msgspec

from fairtrial.config import Suite
from fairtrial.core import registry
from fairtrial.core.experiment import Arm, Case, TargetSpec
from fairtrial.core.ids import canonical_json
from fairtrial.core.options import build_scorer
from fairtrial.core.settings import UserSpec
from fairtrial.engine.user import MAX_REPLY_TOKENS
from fairtrial.judging.asking import longest_reply
from fairtrial.providers.prices import FREE, Price, find_price

_ANSWER_TOKENS, _JUDGE_PROMPT_TOKENS = 1000, 800
_REPLY_CHARACTERS = 400  # of a simulated user


class ArmEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The estimate for one arm; `most_usd` is None if the price is unknown."""

    arm: str
    trials: int
    prompt_tokens: int
    most_usd: float | None
    judge_calls: int = 0


class CostEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The estimate for a run. Token counts are rough (4 characters each); costs assume answers of full length."""

    cases: int
    trials: int
    arms: list[ArmEstimate]
    most_usd: float | None
    judge_calls: int = 0
    judge_usd: float | None = 0.0  # at most, in addition to `most_usd`
    user_usd: float | None = 0.0  # at most, for the simulated user
    total_usd: float | None = None  # at most: answers, judging and the simulated user
    budget_usd: float | None = None


def estimate(suite: Suite) -> CostEstimate:
    """Estimate the size and cost of a run of this suite."""
    trials, characters = [0] * len(suite.arms), [0] * len(suite.arms)
    completion, judge_calls = [0] * len(suite.arms), [0] * len(suite.arms)
    judged_characters = 0  # read by every judge
    for case in suite.cases():
        for index, arm in enumerate(suite.arms):
            repeats = arm.repeats_of(case)
            if not repeats:
                continue
            if _needs_judge(canonical_json(arm.scorer_of(case))):
                judge_calls[index] += repeats * suite.settings.panel.judgements * len(suite.settings.judges)
                judged_characters += repeats * (len(case.input) + len("".join(case.accepted)) + 4 * _ANSWER_TOKENS)
            trials[index] += repeats
            later = _later_turns(case, suite.settings.user)
            characters[index] += repeats * _length(arm, case, later)
            completion[index] += repeats * (1 + len(later)) * (arm.params_of(case).get("max_tokens") or 0)
    arms = []
    for index, arm in enumerate(suite.arms):
        price = _price(arm.target, suite)
        tokens = characters[index] // 4
        arm_usd = None if price is None else price.most(tokens, completion[index])
        sizes = {"trials": trials[index], "prompt_tokens": tokens, "judge_calls": judge_calls[index]}
        arms.append(ArmEstimate(arm=arm.name, most_usd=arm_usd, **sizes))
    most = _sum([arm.most_usd for arm in arms])
    user = _user_cost(suite, sum(trials), sum(characters))
    judging = _judging_cost(suite, sum(judge_calls), judged_characters) if sum(judge_calls) else 0.0
    return CostEstimate(
        cases=suite.case_count,
        trials=sum(trials),
        arms=arms,
        most_usd=most,
        judge_calls=sum(judge_calls),
        judge_usd=judging,
        user_usd=user,
        total_usd=_sum([most, judging, user]),
        budget_usd=suite.settings.budget_usd,
    )


def _price(spec: TargetSpec, suite: Suite) -> Price | None:
    """Return the price of a target's tokens as it is asked: in batches, it is lower."""
    kind = registry.load("targets", spec.kind)
    price = find_price(spec, suite.settings.prices) if kind.priced else FREE
    return price.times(kind.batch_api.part_of_price) if price is not None and spec.batch else price


def _later_turns(case: Case, user: UserSpec | None) -> list[int]:
    """Return the lengths of what the user says after the first question, at most."""
    return [len(text) for text in case.turns] if user is None else [_REPLY_CHARACTERS] * (user.max_turns - 1)


def _length(arm: Arm, case: Case, later: list[int]) -> int:
    """Return the number of characters that are sent with one case; every turn sends all that was said before."""
    chat = arm.condition.render(case, 0)
    first = len(chat.system) + sum(len(message.content) for message in chat.messages)
    return sum(accumulate((length + 4 * _ANSWER_TOKENS for length in later), initial=first))


def _user_cost(suite: Suite, trials: int, characters: int) -> float | None:
    """Estimate the maximum cost of the simulated user, which reads what the targets read."""
    user = suite.settings.user
    if user is None:
        return 0.0
    price = _price(user.target, suite)
    replies = trials * (user.max_turns - 1) * int(user.params.get("max_tokens") or MAX_REPLY_TOKENS)
    return None if price is None else price.most(characters // 4, replies)


def _judging_cost(suite: Suite, calls: int, characters: int) -> float | None:
    """Estimate the maximum cost of judging: every judge reads every answer, at its usual prompt length."""
    judges = suite.settings.judges
    costs: list[float | None] = []
    for judge in judges:
        price = _price(judge.target, suite)
        prompt = suite.settings.panel.judgements * characters // 4 + _JUDGE_PROMPT_TOKENS * calls // len(judges)
        replies = longest_reply(judge.target, judge.params) * calls // len(judges)
        costs.append(None if price is None else price.most(prompt, replies))
    return _sum(costs)


def _sum(costs: list[float | None]) -> float | None:
    return None if None in costs else sum(cost for cost in costs if cost is not None)


@lru_cache(maxsize=512)
def _needs_judge(scorer: bytes) -> bool:
    return build_scorer(msgspec.json.decode(scorer)).needs_judge()
