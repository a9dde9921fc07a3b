"""Human labels and a judge's scores: how well they agree, and the mean corrected by the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from fairtrial.stats.agreement import Agreement, krippendorff_alpha
from fairtrial.stats.correction import Corrected, corrected_mean, corrected_share
from fairtrial.stats.units import Measured
from fairtrial.store import Store, opinions, totals
from fairtrial.store.records import RunRecord

_FEW = 10  # answers; with fewer, agreement cannot be estimated


class ArmLabels(msgspec.Struct, frozen=True, kw_only=True):
    """Human labels of one arm's answers. Values are 0–1."""

    answers: int  # with a label that belongs to the current judge and prompt
    chosen: int  # those of hand-picked answers: they say how well the judge agrees, and correct nothing
    stale: int  # labels that belong to another judge or prompt: not used
    bias: Measured | None  # how much higher the judge scores than people do
    agreement: Agreement | None
    corrected: tuple[Corrected, ...]


class LabelledAnswer(NamedTuple):
    """An answer with the judges' score and a better one."""

    case: int
    repeat: int
    label: float  # the mean over labellers
    score: float
    drawn: bool


def arm_labels(store: Store, record: RunRecord) -> dict[int, ArmLabels]:
    """Return the labels by arm position, for arms that have any."""
    rows = list(opinions.labelled(store, record.id, record.scoring))
    if not rows:
        return {}
    arms = sorted({row["arm_position"] for row in rows})
    scores = totals.trial_scores(store, record.id, record.plan_id, record.scoring, arms)
    return {arm: _arm_labels([row for row in rows if row["arm_position"] == arm], scores[arm]) for arm in arms}


def _arm_labels(rows: Sequence[dict[str, Any]], scores: totals.TrialScores) -> ArmLabels:
    fresh = _labelled([row for row in rows if not row["stale"] and row["score"] is not None])
    drawn = [item for item in fresh if item.drawn]
    return ArmLabels(
        answers=len(fresh),
        chosen=len(fresh) - len(drawn),
        stale=sum(row["stale"] for row in rows),
        bias=float(np.mean([item.score - item.label for item in fresh])) if fresh else None,
        agreement=agreement_on(fresh),
        corrected=corrected_by(drawn, scores) if drawn else (),
    )


def _labelled(rows: Sequence[dict[str, Any]]) -> list[LabelledAnswer]:
    """Return one item per answer, averaged over labellers."""
    by_answer: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in rows:
        by_answer.setdefault((row["case_position"], row["repeat"]), []).append(row)
    return [
        LabelledAnswer(
            case,
            repeat,
            label=float(np.mean([row["value"] for row in labels])),
            score=labels[0]["score"],
            drawn=any(row["drawn"] is not False for row in labels),
        )
        for (case, repeat), labels in by_answer.items()
    ]


def agreement_on(labelled: Sequence[LabelledAnswer]) -> Agreement | None:
    """Return how far labels and scores agree; None of a handful of answers."""
    if len(labelled) < _FEW:
        return None
    both = [[item.label for item in labelled], [item.score for item in labelled]]
    return krippendorff_alpha(both, clusters=[item.case for item in labelled])


def corrected_by(labelled: Sequence[LabelledAnswer], scores: totals.TrialScores) -> tuple[Corrected, ...]:
    """Return the corrected mean.

    Cases are the sample: a case's labelled answers are averaged into one value, and so are those of an unlabelled case.
    """
    if scores.uneven:
        return (_refused("the cases have different weights or clusters", labelled, scores),)
    cases = sorted({item.case for item in labelled})
    y = [float(np.mean([item.label for item in labelled if item.case == case])) for case in cases]
    f = [float(np.mean([item.score for item in labelled if item.case == case])) for case in cases]
    rest = [mean for case, mean in scores.means().items() if case not in set(cases)]
    right_or_wrong = _binary(y) and _binary(f) and _binary(rest)
    return (corrected_share(y, f, rest) if right_or_wrong else corrected_mean(y, f, rest),)


def _refused(reason: str, labelled: Sequence[LabelledAnswer], scores: totals.TrialScores) -> Corrected:
    means = list(scores.means().values())
    return Corrected(
        mean=None,
        ci95=None,
        uncorrected=float(np.mean(means)),
        labelled=len({item.case for item in labelled}),
        unlabelled=len(means) - len({item.case for item in labelled}),
        method="labels and marks",
        refused=reason,
    )


def _binary(values: Sequence[float]) -> bool:
    return all(value in (0.0, 1.0) for value in values)
