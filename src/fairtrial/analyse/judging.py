"""The judges of a run: their calibration, their agreement, and their share of the noise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.scorers_used import rubrics, scorers_used
from fairtrial.analyse.second_judge import second_judge
from fairtrial.core.experiment import Arm
from fairtrial.core.place import place_of
from fairtrial.core.settings import JudgeSpec
from fairtrial.providers.params import unsupported_params
from fairtrial.stats.agreement import Agreement, cohen_kappa, effective_judges, krippendorff_alpha
from fairtrial.stats.units import Measured
from fairtrial.store import Store, opinions
from fairtrial.store.calibrations import calibrations_of
from fairtrial.store.records import RunRecord
from fairtrial.store.rows import decode

Floats = NDArray[np.float64]
_FEW = 10  # labelled answers; with fewer, the correlation of errors cannot be estimated


class JudgeRating(msgspec.Struct, frozen=True, kw_only=True):
    """How a judge of this run was rated when calibrated: with this run's prompt, with another one, or never."""

    judge: str
    rating: str | None
    fits: bool  # calibrated with the same prompt that this run used
    created_at: float | None = None
    mean_absolute_error: Measured | None = None
    bias: Measured | None = None


class Kappa(msgspec.Struct, frozen=True):
    """The agreement of two judges."""

    one: str
    other: str
    agreement: Agreement


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a run's judges. Standard deviations are of scores 0–1."""

    judges: list[JudgeRating]
    alpha: Agreement | None = None
    kappas: list[Kappa] = []
    effective_judges: float | None = None
    judge_sd: Measured | None = None  # between judgements of the same answer by the same judge
    repeat_sd: Measured | None = None  # between answers to the same case, as judged
    answer_sd: Measured | None = None  # the same without the judges' noise
    hot: dict[str, float] = {}  # judges that were asked with a temperature above 0
    second: str | None = None  # the judge that judged a part of the cases only
    rubrics: list[str] = []  # whose descriptions of grades they were given by `golden_judge`


def judging(store: Store, record: RunRecord, arms: Sequence[Arm]) -> Judging | None:
    """Return what is known about a run's judges; None if no judge was used."""
    judges = opinions.judges_asked(store, record.id, record.scoring)
    if not judges:
        return None
    second = second_judge(decode(record.settings))
    other = second.name if second else None
    ratings = [_rating(store, judge, key, prompt) for judge, key, prompt in judges if key]
    judgements = opinions.judge_values(store, record.id, record.scoring)
    hot = _hot(record, [name for name, _, _ in judges])
    given = rubrics(scorers_used(store, record, arms))
    if not len(judgements.values):
        return Judging(judges=ratings, hot=hot, rubrics=given, second=other)
    matrix = _matrix(judgements)
    several = len(judgements.judges) > 1
    cases = [place[0] for place in judgements.answers]
    scoring = judgements.without(other)
    judge_variance, each = _judge_variance(scoring)
    repeat_variance = _repeat_variance(scoring)
    return Judging(
        judges=ratings,
        hot=hot,
        rubrics=given,
        second=other,
        alpha=krippendorff_alpha(matrix, clusters=cases) if several else None,
        kappas=[
            Kappa(judgements.judges[a], judgements.judges[b], cohen_kappa(matrix[a], matrix[b], clusters=cases))
            for a, b in combinations(range(len(judgements.judges)), 2)
        ],
        effective_judges=_effective(store, record, judgements, matrix) if several else None,
        judge_sd=_root(judge_variance),
        repeat_sd=_root(repeat_variance),
        answer_sd=None
        if judge_variance is None or repeat_variance is None
        else _root(max(0.0, repeat_variance - judge_variance / each)),
    )


def _hot(record: RunRecord, asked: list[str]) -> dict[str, float]:
    """Return the temperature of the judges that had one above 0, where it was sent."""
    specs = msgspec.convert(decode(record.settings).get("judges") or [], list[JudgeSpec])
    return {
        spec.name: float(temperature)
        for spec in specs
        if spec.name in asked
        and (temperature := spec.params.get("temperature"))
        and "temperature" not in unsupported_params(spec.target, spec.params)
    }


def _rating(store: Store, judge: str, key: str, prompt: str) -> JudgeRating:
    calibrations = calibrations_of(store, key)
    same_prompt = [row for row in calibrations if row["prompt_hash"] == prompt]
    if not calibrations:
        return JudgeRating(judge=judge, rating=None, fits=False)
    row = (same_prompt or calibrations)[0]
    summary: dict[str, Any] = decode(row["body"])["summary"]
    return JudgeRating(
        judge=judge,
        rating=row["rating"],
        fits=bool(same_prompt),
        created_at=row["created_at"],
        mean_absolute_error=summary["mean_absolute_error"],
        bias=summary["bias"],
    )


def _effective(store: Store, record: RunRecord, judgements: opinions.JudgeValues, matrix: Floats) -> float | None:
    """Return how many independent judges the panel is worth; only human labels reveal each judge's errors."""
    labels: dict[tuple[int, int, int], list[float]] = {}
    for row in opinions.labelled(store, record.id, record.scoring):
        if not row["stale"]:
            place = place_of(row)
            labels.setdefault(place, []).append(row["value"])
    chosen = [number for number, place in enumerate(judgements.answers) if place in labels]
    if len(chosen) < _FEW:
        return None
    truth = np.asarray([float(np.mean(labels[judgements.answers[number]])) for number in chosen])
    return effective_judges(matrix[:, chosen] - truth)


def _matrix(judgements: opinions.JudgeValues) -> Floats:
    """Return each judge's mean score of each answer as judges × answers; NaN where there is none."""
    sums = np.zeros((len(judgements.judges), len(judgements.answers)))
    counts = np.zeros_like(sums)
    places = (np.asarray(judgements.judge), np.asarray(judgements.answer))
    np.add.at(sums, places, np.asarray(judgements.values))
    np.add.at(counts, places, 1)
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, sums / counts, np.nan)


def _judge_variance(judgements: opinions.JudgeValues) -> tuple[float | None, float]:
    """Return the pooled variance of a judge's repeated judgements of an answer, and the judgements per answer."""
    groups = np.asarray(judgements.judge) * len(judgements.answers) + np.asarray(judgements.answer)
    return _pooled(groups, np.asarray(judgements.values)), len(judgements.values) / len(judgements.answers)


def _repeat_variance(judgements: opinions.JudgeValues) -> float | None:
    """Return the pooled variance of scores between the repeats of a case."""
    answer = np.asarray(judgements.answer)
    scores = np.bincount(answer, weights=np.asarray(judgements.values)) / np.bincount(answer)
    arms = 1 + max(arm for _, arm, _ in judgements.answers)
    return _pooled(np.asarray([case * arms + arm for case, arm, _ in judgements.answers]), scores)


def _pooled(groups: NDArray[np.int64], values: Floats) -> float | None:
    """Return the pooled within-group variance; None if no group has two values."""
    _, codes = np.unique(groups, return_inverse=True)
    counts = np.bincount(codes)
    freedom = int(np.sum(counts - 1))
    if freedom == 0:
        return None
    means = np.bincount(codes, weights=values) / counts
    return float(np.sum((values - means[codes]) ** 2)) / freedom


def _root(variance: float | None) -> float | None:
    return None if variance is None else float(np.sqrt(variance))
