"""The judges of a run: how they were rated, how far they agree, and how much of the spread is theirs."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.core.place import place_of
from fairtrial.stats.agreement import Agreement, cohen_kappa, effective_judges, krippendorff_alpha
from fairtrial.stats.units import Measured
from fairtrial.store import Store, opinions
from fairtrial.store.rows import decode
from fairtrial.store.store import RunRecord

Floats = NDArray[np.float64]
_FEW = 10  # labelled answers; errors on fewer say nothing of how they go together


class JudgeRating(msgspec.Struct, frozen=True, kw_only=True):
    """How a judge of this run did when it was calibrated: with the prompt of this run, with another, or never."""

    judge: str
    rating: str | None
    fits: bool  # calibrated with the very prompt that was used
    created_at: float | None = None
    mean_absolute_error: Measured | None = None
    bias: Measured | None = None


class Kappa(msgspec.Struct, frozen=True):
    """How far two judges agree."""

    one: str
    other: str
    agreement: Agreement


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run's judges. Deviations are of scores 0–1."""

    judges: list[JudgeRating]
    alpha: Agreement | None = None
    kappas: list[Kappa] = []
    effective_judges: float | None = None
    judge_sd: Measured | None = None  # the same judge on the same answer, once more
    repeat_sd: Measured | None = None  # another answer to the same case, as judged
    answer_sd: Measured | None = None  # the same with the judges' noise taken out


def judging(store: Store, record: RunRecord) -> Judging | None:
    """None where no judge was asked."""
    asked = opinions.judges_asked(store, record.id, record.scoring)
    if not asked:
        return None
    ratings = [_rating(store, judge, key, prompt) for judge, key, prompt in asked if key]
    said = opinions.judge_values(store, record.id, record.scoring)
    if not len(said.values):
        return Judging(judges=ratings)
    matrix = _matrix(said)
    several = len(said.judges) > 1
    cases = [place[0] for place in said.answers]
    judge_variance, each = _judge_variance(said)
    repeat_variance = _repeat_variance(said)
    return Judging(
        judges=ratings,
        alpha=krippendorff_alpha(matrix, clusters=cases) if several else None,
        kappas=[
            Kappa(said.judges[a], said.judges[b], cohen_kappa(matrix[a], matrix[b], clusters=cases))
            for a, b in combinations(range(len(said.judges)), 2)
        ],
        effective_judges=_effective(store, record, said, matrix) if several else None,
        judge_sd=_root(judge_variance),
        repeat_sd=_root(repeat_variance),
        answer_sd=None
        if judge_variance is None or repeat_variance is None
        else _root(max(0.0, repeat_variance - judge_variance / each)),
    )


def _rating(store: Store, judge: str, key: str, prompt: str) -> JudgeRating:
    known = store.calibrations(key)
    fitting = [row for row in known if row["prompt_hash"] == prompt]
    if not known:
        return JudgeRating(judge=judge, rating=None, fits=False)
    row = (fitting or known)[0]
    summary: dict[str, Any] = decode(row["body"])["summary"]
    return JudgeRating(
        judge=judge,
        rating=row["rating"],
        fits=bool(fitting),
        created_at=row["created_at"],
        mean_absolute_error=summary["mean_absolute_error"],
        bias=summary["bias"],
    )


def _effective(store: Store, record: RunRecord, said: opinions.JudgeValues, matrix: Floats) -> float | None:
    """How many independent judges the panel is worth: only people's marks tell what each judge is off by."""
    labels: dict[tuple[int, int, int], list[float]] = {}
    for row in opinions.labelled(store, record.id, record.scoring):
        if not row["stale"]:
            place = place_of(row)
            labels.setdefault(place, []).append(row["value"])
    chosen = [number for number, place in enumerate(said.answers) if place in labels]
    if len(chosen) < _FEW:
        return None
    truth = np.asarray([float(np.mean(labels[said.answers[number]])) for number in chosen])
    return effective_judges(matrix[:, chosen] - truth)


def _matrix(said: opinions.JudgeValues) -> Floats:
    """Judges × answers: the mean of what each judge said of each answer; NaN where it said nothing."""
    sums = np.zeros((len(said.judges), len(said.answers)))
    counts = np.zeros_like(sums)
    places = (np.asarray(said.judge), np.asarray(said.answer))
    np.add.at(sums, places, np.asarray(said.values))
    np.add.at(counts, places, 1)
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, sums / counts, np.nan)


def _judge_variance(said: opinions.JudgeValues) -> tuple[float | None, float]:
    """The pooled variance of one judge's repeated judgements of one answer, and how many judgements a score has."""
    groups = np.asarray(said.judge) * len(said.answers) + np.asarray(said.answer)
    return _pooled(groups, np.asarray(said.values)), len(said.values) / len(said.answers)


def _repeat_variance(said: opinions.JudgeValues) -> float | None:
    """The pooled variance of scores between the repeats of one case."""
    answer = np.asarray(said.answer)
    scores = np.bincount(answer, weights=np.asarray(said.values)) / np.bincount(answer)
    arms = 1 + max(arm for _, arm, _ in said.answers)
    return _pooled(np.asarray([case * arms + arm for case, arm, _ in said.answers]), scores)


def _pooled(groups: NDArray[np.int64], values: Floats) -> float | None:
    """Within-group variance; None where no group has two values."""
    _, codes = np.unique(groups, return_inverse=True)
    counts = np.bincount(codes)
    freedom = int(np.sum(counts - 1))
    if freedom == 0:
        return None
    means = np.bincount(codes, weights=values) / counts
    return float(np.sum((values - means[codes]) ** 2)) / freedom


def _root(variance: float | None) -> float | None:
    return None if variance is None else float(np.sqrt(variance))
