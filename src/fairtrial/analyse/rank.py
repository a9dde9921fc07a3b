"""A ranking with honest ranks: scores on common cases, and ratings from comparisons in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.contestants import SCORE, Contestant, Field, check_metric
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import Aggregate, aggregate, bradley_terry, elo
from fairtrial.store import opinions

Floats = NDArray[np.float64]
By = Literal["scores", "verdicts"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One arm in a ranking. `rank` and `worst_rank` are the ranks that its interval leaves open."""

    label: str
    aggregate: Aggregate
    rank: int
    worst_rank: int
    rating: float | None = None
    rating_ci95: tuple[float, float] | None = None
    elo: float | None = None


class WinMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """wins[i][j] is how often arm i beat arm j, ties counted half; over `prompts` cases."""

    by: By
    labels: list[str]
    wins: list[list[float]]
    battles: int
    prompts: int


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """Arms from best to worst, on the cases that all of them have a score for."""

    sources: list[str]
    metric: str
    cases: int
    left_out: int  # cases that some arm has no score for
    by: By
    places: list[Place]
    matrix: WinMatrix | None
    notes: list[str]


class Battles(msgspec.Struct, frozen=True):
    """Comparisons in pairs as columns: who, against whom, what the first one got, and on which prompt."""

    one: list[int]
    other: list[int]
    worth: list[float]
    prompts: list[str]


def rank(field: Field, *, metric: str = SCORE, by: By | None = None) -> Ranking:
    """Rank every arm; ratings come from judges' verdicts on pairs where there are any, else from scores."""
    check_metric(field.contestants, metric)
    people = [one for one in field.contestants if one.values.get(metric)]
    silent = [one.label for one in field.contestants if not one.values.get(metric)]
    if len(people) < 2:
        raise FairtrialError("it takes two arms with scores to rank them")
    means = [one.means(metric) for one in people]
    everywhere = set.intersection(*(set(found) for found in means))
    keys = sorted(key for key in everywhere if field.weights[key] > 0)
    if not keys:
        raise FairtrialError("these have no case in common: nothing can be ranked")
    clusters = [field.clusters.get(key, f"\0{key}") for key in keys] if field.clusters else None
    weights = [field.weights[key] for key in keys]
    numbers = [
        aggregate([found[key] for key in keys], weights, clusters, scale=one.scales[metric])
        for one, found in zip(people, means, strict=True)
    ]
    judged = _verdicts(field, people) if by != "scores" else None
    if by == "verdicts" and judged is None:
        raise FairtrialError("no judge has compared these arms in pairs yet: `fairtrial pairwise RUN` does")
    sign = people[0].sign(metric)
    battles = judged or _from_scores(means, keys, sign, clusters or keys)
    count = len(set().union(*means))
    places = _places(people, numbers, battles, sign)
    return Ranking(
        sources=[source.label for source in field.sources],
        metric=metric,
        cases=len(keys),
        left_out=count - len(keys),
        by="verdicts" if judged else "scores",
        places=places,
        matrix=_matrix(people, places, battles, "verdicts" if judged else "scores"),
        notes=_notes(len(keys), count, places, silent),
    )


def _places(people: Sequence[Contestant], numbers: Sequence[Aggregate], battles: Battles, sign: int) -> list[Place]:
    ratings = bradley_terry(battles.one, battles.other, battles.worth, prompts=battles.prompts, players=len(people))
    running = elo(battles.one, battles.other, battles.worth)
    best, worst = _rank_range([found.ci95 for found in numbers], sign)
    fought = {*battles.one, *battles.other}
    places = [
        Place(
            label=one.label,
            aggregate=numbers[number],
            rank=best[number],
            worst_rank=worst[number],
            rating=ratings.ratings[number] if ratings.bounded else None,
            rating_ci95=ratings.intervals[number] if ratings.intervals and ratings.bounded else None,
            elo=running.ratings[number] if number in fought else None,
        )
        for number, one in enumerate(people)
    ]
    return sorted(places, key=lambda place: -sign * (place.aggregate.mean or 0.0))


def _rank_range(bounds: Sequence[tuple[float, float] | None], sign: int) -> tuple[list[int], list[int]]:
    """1 + how many are surely above me, and how many are not surely below me. Without an interval, any rank."""
    low = np.asarray([-np.inf if b is None else min(sign * b[0], sign * b[1]) for b in bounds])
    high = np.asarray([np.inf if b is None else max(sign * b[0], sign * b[1]) for b in bounds])
    above = [1 + int(np.sum(low > own)) for own in high]
    below = [len(bounds) - int(np.sum(high < own)) for own in low]
    return above, below


def _from_scores(means: Sequence[dict[str, float]], keys: Sequence[str], sign: int, prompts: Sequence[str]) -> Battles:
    """Who has the better score on a case wins it; equal scores are a tie. Cases of one cluster are one prompt."""
    values = sign * np.asarray([[found[key] for key in keys] for found in means])
    one, other = np.triu_indices(len(means), 1)
    worth = np.where(values[one] > values[other], 1.0, np.where(values[one] < values[other], 0.0, 0.5))
    count = len(keys)
    return Battles(
        one.repeat(count).tolist(), other.repeat(count).tolist(), worth.ravel().tolist(), list(prompts) * len(one)
    )


def _verdicts(field: Field, people: Sequence[Contestant]) -> Battles | None:
    """What judges said of pairs of answers, in both orders; disagreement is a tie."""
    number = {id(one): place for place, one in enumerate(people)}
    found = Battles([], [], [], [])
    for source in field.sources:
        own = {one.arm.name: number[id(one)] for one in people if one.source is source}
        for run in source.runs:
            names = [arm.name for arm in run.plan_arms]
            for row in opinions.pairs(run.store, run.id):
                a, b = own.get(names[row["arm_one"]]), own.get(names[row["arm_other"]])
                if row["failure_kind"] is not None or a is None or b is None:
                    continue
                found.one.append(a)
                found.other.append(b)
                found.worth.append(row["forward"] if row["forward"] == row["backward"] else 0.5)
                found.prompts.append(f"{run.plan.id}:{row['case_position']}")
    return found if found.one else None


def _matrix(people: Sequence[Contestant], places: Sequence[Place], battles: Battles, by: By) -> WinMatrix:
    """In the order of the ranking."""
    k = len(people)
    wins = np.zeros((k, k))
    one, other, worth = np.asarray(battles.one), np.asarray(battles.other), np.asarray(battles.worth)
    np.add.at(wins, (one, other), worth)
    np.add.at(wins, (other, one), 1 - worth)
    labels = [person.label for person in people]
    order = [labels.index(place.label) for place in places]
    return WinMatrix(
        by=by,
        labels=[place.label for place in places],
        wins=wins[np.ix_(order, order)].tolist(),
        battles=len(worth),
        prompts=len(set(battles.prompts)),
    )


def _notes(common: int, everything: int, places: Sequence[Place], silent: Sequence[str]) -> list[str]:
    notes = []
    if silent:
        notes.append(f"Without a score, and so not ranked: {', '.join(silent)}.")
    if places[0].rating is None:
        notes.append("Somebody only wins or only loses: how strong they are has no bound, so there are no ratings.")
        return notes
    if common != everything:
        notes.append(f"Ranked on the {common} of {everything} cases that every arm has a score for.")
    ratings = [place.rating or 0.0 for place in places]
    if ratings != sorted(ratings, reverse=True):
        notes.append("Scores and ratings differ in order: a rating counts who won a case, not by how much.")
    return notes


def rank_words(place: Place) -> str:
    """`1` where it is sure, `1–3` where it is not."""
    return str(place.rank) if place.rank == place.worst_rank else f"{place.rank}–{place.worst_rank}"
