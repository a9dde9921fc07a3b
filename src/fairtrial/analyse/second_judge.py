"""What a second judge says of a random part of the answers, and the mean corrected by that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairtrial.analyse.labels import LabelledAnswer, agreement_on, corrected_by
from fairtrial.core.judge import SECOND_JUDGE, SECOND_JUDGE_TOP, judge_key
from fairtrial.core.money import Cost, total
from fairtrial.core.settings import JudgeSpec
from fairtrial.stats.agreement import Agreement
from fairtrial.stats.correction import Corrected
from fairtrial.stats.units import Measured
from fairtrial.store import Store, opinions, outcomes, totals
from fairtrial.store.records import RunRecord
from fairtrial.store.rows import decode


class SecondOpinion(msgspec.Struct, frozen=True, kw_only=True):
    """A second judge's scores of one arm's answers. Values are 0–1."""

    judge: str
    answers: int
    bias: Measured  # how much higher the first judge scores them
    agreement: Agreement | None
    corrected: Corrected
    calls: int  # for its verdicts
    cost: Cost  # of these
    usd: float | None  # what all judges cost; None where that is unknown, or nothing was paid
    alone_usd: float | None  # what the second judge alone would cost, if it were to make the mean as sure


def second_judge(settings: Mapping[str, Any]) -> JudgeSpec | None:
    """Return the second judge of a run with these settings."""
    judges = msgspec.convert(settings.get("judges") or [], list[JudgeSpec])
    return next((judge for judge in judges if judge.share is not None), None)


def second_opinions(store: Store, record: RunRecord) -> dict[int, SecondOpinion]:
    """Return what the second judge of a run says, by arm position."""
    judge = second_judge(decode(record.settings))
    if judge is None:
        return {}
    answers: dict[int, list[LabelledAnswer]] = {}
    where = store, record.id, record.scoring
    for case, arm, repeat, score, metrics in outcomes.repeat_rows(*where, None):
        value = metrics.get(SECOND_JUDGE, (None, None, None))[0]
        if score is not None and value is not None:
            answer = LabelledAnswer(case, repeat, value / SECOND_JUDGE_TOP, score, drawn=True)
            answers.setdefault(arm, []).append(answer)
    scores = totals.trial_scores(store, record.id, record.plan_id, record.scoring, list(answers))
    paid = opinions.verdict_costs(*where)
    key = judge_key(judge)
    return {
        arm: _opinion(judge.name, own, scores[arm], {one == key: part for (at, one), part in paid.items() if at == arm})
        for arm, own in answers.items()
    }


def _opinion(
    judge: str, answers: list[LabelledAnswer], scores: totals.TrialScores, paid: Mapping[bool, tuple[int, Cost]]
) -> SecondOpinion:
    """Return what the second judge says of an arm; `paid` has calls and cost of the others and of itself."""
    (corrected,) = corrected_by(answers, scores)
    cost, (calls, own) = total(part for _, part in paid.values()), paid.get(True, (0, Cost()))
    known = bool(cost.usd and own.usd and calls and corrected.worth)
    return SecondOpinion(
        judge=judge,
        answers=len(answers),
        bias=sum(item.score - item.label for item in answers) / len(answers),
        agreement=agreement_on(answers),
        corrected=corrected,
        calls=calls,
        cost=own,
        usd=cost.usd if known else None,
        alone_usd=own.known * (corrected.worth or 0.0) / corrected.labelled if known else None,
    )
