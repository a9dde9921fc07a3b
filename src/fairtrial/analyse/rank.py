"""Rank arms with the uncertainty of their ranks: scores on common cases, and ratings from pairwise comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.battles import STYLE, Battles, By, from_pairs, from_scores
from fairtrial.analyse.caveats import AgainstFirst, Caveat, ComparedApart, PlainCaveat, RatedOnFewer, Unranked
from fairtrial.analyse.compare import decided, with_first
from fairtrial.analyse.guidance import unfinished
from fairtrial.analyse.leaderboard import Leaderboard, table_leaderboard
from fairtrial.analyse.score_table import ArmScores, ScoreTable, check_metric
from fairtrial.core.errors import FairtrialError
from fairtrial.core.many_arms import MOST_ARMS, MOST_RATED, is_large
from fairtrial.core.showing import Shown
from fairtrial.stats import Aggregate, Gap, Ratings, bradley_terry, elo, holm, holm_levels
from fairtrial.stats.distributions import t_quantile
from fairtrial.stats.mean import ALPHA
from fairtrial.stats.pair_fit import FIT_LEVEL

Table = NDArray[np.bool_]  # [i, j]: whether i is better than j
_FEW_PROMPTS = 6  # with fewer, even five wins out of five may be luck


class RankedArm(msgspec.Struct, frozen=True, kw_only=True):
    """One arm in a ranking. `rank` and `worst_rank` are the best and worst ranks that the pairwise verdicts allow."""

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


class Ranking(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """Arms from best to worst; ratings are from the cases that all of them have a score for."""

    sources: list[str]
    metric: str
    cases: int
    left_out: int  # cases that some arm has no score for
    by: By
    places: list[RankedArm]
    matrix: WinMatrix | None
    caveats: list[Caveat] = msgspec.field(name="notes")
    style: list[Style] = []  # what was controlled for
    by_pairs: bool = False  # whether order and ranks come from the pairs, not from the scores

    @property
    def notes(self) -> list[str]:
        """What to read before trusting it."""
        return list(map(str, self.caveats))


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a style feature on those who judged: rating points for one standard deviation more of it."""

    name: str
    points: float
    ci95: tuple[float, float] | None


def rank(
    scores: ScoreTable,
    *,
    metric: str | None = None,
    by: By | None = None,
    control_style: bool = False,
    board: Leaderboard | None = None,
) -> Ranking:
    """Rank every arm; ratings come from judges' verdicts on pairs, else from people's votes, else from scores.

    An arm's best possible rank is one plus the number of arms that are better than it; its worst possible rank is the
    number of arms minus those that it is better than. The verdicts are those of `compare` on all pairs, so both always
    agree. With `control_style`, ratings are adjusted to answers of equal length and markup. `board` is the leaderboard
    by this metric, if it is known already.
    """
    metric = scores.primary if metric is None else metric
    check_metric(scores.arms, metric)
    arms = [one for one in scores.arms if one.values.get(metric)]
    unscored = [one.label for one in scores.arms if not one.values.get(metric)]
    if len(arms) < 2:
        raise FairtrialError("a ranking needs two arms with scores")
    means = [one.means(metric) for one in arms]
    table = np.asarray(means)
    keys = np.flatnonzero(~np.isnan(table).any(axis=0) & (scores.weights > 0))
    prompts = keys if scores.clusters is None else scores.clusters[keys]  # cases of one cluster are one prompt
    sign = arms[0].sign(metric)
    by_pairs = by not in (None, "scores")  # asking for verdicts or votes means ranking by them
    by, judged = _judged(scores, arms, by, styled=control_style)
    if control_style and judged is None:
        raise FairtrialError(
            "style can be controlled for only where pairs were compared: run "
            f"`fairtrial pairwise RUN{_judge_option(scores)}` or `fairtrial vote RUN`"
        )
    count = int(np.sum(~np.isnan(table).all(axis=0)))
    if judged is None and len(arms) > MOST_ARMS:
        return _unrated(scores, metric, board, cases=len(keys), left_out=count - len(keys))
    if judged is None and not len(keys):
        raise FairtrialError("nothing can be ranked: the arms have no cases in common")
    battles = judged or from_scores(sign * table[:, keys], prompts)
    ratings = rated(battles, len(arms), styled=control_style, fit=judged is not None)
    # Ratings of scores of which a part was left out would contradict the ranks.
    unrated = not fits(ratings) or (judged is None and any(one.stop is not None for one in arms))
    if by_pairs:
        places = _by_ratings(scores, arms, metric, ratings)
    else:
        places = _by_scores(table_leaderboard(scores, metric) if board is None else board)
    if not unrated:
        places = _with_ratings(places, arms, battles, ratings)
    if by_pairs:
        places.sort(key=_by_rating)
    caveats: list[Caveat] = [PlainCaveat(what="ratings_left_out" if fits(ratings) else "battles_do_not_fit")]
    if not unrated:
        caveats = list(_caveats(len(keys), count, places, unscored, arms, ratings, by_pairs=by_pairs))
    return Ranking(
        sources=[source.label for source in scores.sources],
        metric=metric,
        cases=len(keys),
        left_out=count - len(keys),
        by=by,
        places=places,
        matrix=_matrix(arms, places, battles, by),
        caveats=[*caveats, *unfinished(scores.sources)],
        style=_style(battles, ratings),
        by_pairs=by_pairs,
    )


def _unrated(scores: ScoreTable, metric: str, board: Leaderboard | None, *, cases: int, left_out: int) -> Ranking:
    """Rank very many arms by their scores alone: ratings take every pair."""
    return Ranking(
        sources=[source.label for source in scores.sources],
        metric=metric,
        cases=cases,
        left_out=left_out,
        by="scores",
        places=_by_scores(table_leaderboard(scores, metric) if board is None else board),
        matrix=None,
        caveats=[PlainCaveat(what="too_many_to_rate"), *unfinished(scores.sources)],
    )


def _by_scores(board: Leaderboard) -> list[RankedArm]:
    """Return the arms with the ranks that the verdicts on their scores allow."""
    return [
        RankedArm(label=one.label, aggregate=one.aggregate, rank=one.rank, worst_rank=one.worst_rank)
        for one in board.places
    ]


def _style(battles: Battles, ratings: Ratings) -> list[Style]:
    """Return the effects of the style features in which answers differ; empty if ratings are not bounded."""
    if not ratings.effects or not ratings.bounded or ratings.confounded:
        return []
    differ = [any(values) for values in zip(*battles.style, strict=True)]
    effects = zip(STYLE, ratings.effects, differ, strict=True)
    return [
        Style(name=name, points=effect.points, ci95=effect.interval) for name, effect, differs in effects if differs
    ]


def _judged(scores: ScoreTable, arms: Sequence[ArmScores], by: By | None, *, styled: bool) -> tuple[By, Battles | None]:
    """Return what the ratings are based on, and the battles, if judges or people compared pairs."""
    if by == "scores":
        return by, None
    choices: tuple[By, ...] = ("verdicts", "votes") if by is None else (by,)
    for choice in choices:
        if battles := from_pairs(scores, arms, choice, styled=styled):
            _check_can_be_rated(len(arms))
            return choice, battles
    if by == "votes":
        raise FairtrialError("there are no votes on these arms yet: run `fairtrial vote RUN`")
    if by is not None:
        raise FairtrialError(
            f"no judge has compared these arms in pairs yet: run `fairtrial pairwise RUN{_judge_option(scores)}`"
        )
    return "scores", None


def _check_can_be_rated(arms: int) -> None:
    if arms > MOST_RATED:
        raise FairtrialError(
            f"ratings from votes and verdicts take at most {MOST_RATED:,} arms, and there are {arms:,}: rank them with "
            "--by scores"
        )


def _judge_option(scores: ScoreTable) -> str:
    """Return what names a judge on the command line, which a run without one needs."""
    judged = all(run.settings.get("judges") for source in scores.sources for run in source.runs)
    return "" if judged else " --judge JUDGE"


def open_ranks(better: Table, number: int) -> tuple[int, int]:
    """Return the best and the worst rank of an arm, from which arm is better than which."""
    return 1 + int(better[:, number].sum()), len(better) - int(better[number].sum())


def better_than(scores: ScoreTable, arms: Sequence[ArmScores], metric: str) -> Table:
    """Return which arm is better than which, by the verdicts of `compare` on every pair."""
    place = {one.label: number for number, one in enumerate(arms)}
    better = np.zeros((len(arms), len(arms)), dtype=bool)
    everything = list(combinations(arms, 2))
    pairs = with_first(scores, everything, metric)
    for pair in decided(scores, pairs, [metric], detailed=0, family=everything):
        if pair.verdict in ("better", "worse"):
            winner, loser = (pair.a, pair.b) if pair.verdict == "better" else (pair.b, pair.a)
            better[place[winner], place[loser]] = True
    return better


def rated(battles: Battles, players: int, *, styled: bool = False, fit: bool = False) -> Ratings:
    """Rate players with intervals that hold for all pairs together: where two do not overlap, one is better.

    Of very many players, each is compared with the strongest only. `fit` tests whether one strength each explains the
    battles, if style is not controlled for.
    """
    pairs = math.comb(players, 2)
    return bradley_terry(
        battles.one,
        battles.other,
        battles.worth,
        prompts=battles.prompts,
        players=players,
        covariates=battles.style if styled else None,
        alpha=ALPHA / max(1, pairs),
        every_gap=not is_large(pairs),
        fit=fit and not is_large(pairs),
    )


def gap_intervals(ratings: Ratings) -> dict[tuple[int, int], tuple[float, float]]:
    """Return the interval of each gap, in log-odds, at its level among all pairs: it excludes 0 if one is better."""
    testable, pairs = _testable(ratings), math.comb(len(ratings.ratings), 2)
    shared = (
        [ALPHA / pairs] * len(testable) if is_large(pairs) else holm_levels([gap.p_value or 0.0 for gap in testable])
    )
    intervals = {}
    for gap, level in zip(testable, shared, strict=True):
        half = t_quantile(1 - level / 2, gap.freedom) * gap.std_err
        intervals[gap.one, gap.other] = (gap.difference - half, gap.difference + half)
    return intervals


def fits(ratings: Ratings) -> bool:
    """Return whether one strength for each arm explains the battles, as far as was tested."""
    return ratings.fit_p is None or ratings.fit_p >= FIT_LEVEL


def _testable(ratings: Ratings) -> list[Gap]:
    """Return the gaps that have a p-value; with few prompts, none."""
    if (ratings.prompts or 0) < _FEW_PROMPTS or ratings.confounded or not fits(ratings):
        return []
    return [gap for gap in ratings.gaps if gap.p_value is not None]


def better_by_rating(ratings: Ratings) -> Table:
    """Return which arm is stronger than which, over all pairs together (Holm; of very many arms Bonferroni)."""
    better = np.zeros((len(ratings.ratings), len(ratings.ratings)), dtype=bool)
    testable, pairs = _testable(ratings), math.comb(len(ratings.ratings), 2)
    p_values = [gap.p_value or 0.0 for gap in testable]
    adjusted = [p * pairs for p in p_values] if is_large(pairs) else holm(p_values)
    for gap, p in zip(testable, adjusted, strict=True):
        if p < ALPHA:
            winner, loser = (gap.one, gap.other) if gap.difference > 0 else (gap.other, gap.one)
            better[winner, loser] = True
    return better


def _by_ratings(scores: ScoreTable, arms: Sequence[ArmScores], metric: str, ratings: Ratings) -> list[RankedArm]:
    """Return the arms with the ranks that their ratings allow."""
    better = better_by_rating(ratings)
    ranks = [open_ranks(better, number) for number in range(len(arms))]
    return [
        RankedArm(label=one.label, aggregate=scores.aggregate(one, metric), rank=rank, worst_rank=worst_rank)
        for one, (rank, worst_rank) in zip(arms, ranks, strict=True)
    ]


def _with_ratings(
    places: Sequence[RankedArm], arms: Sequence[ArmScores], battles: Battles, ratings: Ratings
) -> list[RankedArm]:
    running = elo(battles.one, battles.other, battles.worth)
    rated = ratings.bounded and not ratings.confounded
    fought = set(np.unique([battles.one, battles.other]).tolist())
    number_of = {one.label: number for number, one in enumerate(arms)}
    return [
        msgspec.structs.replace(
            place,
            rating=ratings.ratings[number] if rated else None,
            rating_ci95=ratings.intervals[number] if ratings.intervals and rated else None,
            elo=running.ratings[number] if number in fought else None,
        )
        for place in places
        for number in [number_of[place.label]]
    ]


def _by_rating(place: RankedArm) -> float:
    """Return a sort key: best first; arms without any battle come last."""
    strength = place.elo if place.rating is None else place.rating
    return math.inf if strength is None or place.elo is None else -strength


def _matrix(arms: Sequence[ArmScores], places: Sequence[RankedArm], battles: Battles, by: By) -> WinMatrix | None:
    """Return the matrix of wins, in the order of the ranking; None of very many arms."""
    k = len(arms)
    if k > MOST_ARMS:
        return None
    wins = np.zeros((k, k))
    one, other, worth = np.asarray(battles.one), np.asarray(battles.other), np.asarray(battles.worth)
    np.add.at(wins, (one, other), worth)
    np.add.at(wins, (other, one), 1 - worth)
    labels = [arm.label for arm in arms]
    order = [labels.index(place.label) for place in places]
    return WinMatrix(
        by=by,
        labels=[place.label for place in places],
        wins=wins[np.ix_(order, order)].tolist(),
        battles=len(worth),
        prompts=len(np.unique(battles.prompts)),
    )


def _caveats(
    common: int,
    everything: int,
    places: Sequence[RankedArm],
    unscored: list[str],
    arms: Sequence[ArmScores],
    ratings: Ratings,
    *,
    by_pairs: bool,
) -> Iterator[Caveat]:
    if len(arms) > MOST_ARMS:
        yield AgainstFirst(pairs=math.comb(len(arms), 2))
    if ratings.confounded:
        yield PlainCaveat(what="style_confounded")
        return
    if unscored:
        yield Unranked(arms=unscored)
    if len(set(ratings.groups)) > 1:
        yield ComparedApart(
            groups=[
                [one.label for one, own in zip(arms, ratings.groups, strict=True) if own == group]
                for group in dict.fromkeys(ratings.groups)
            ]
        )
        return
    if places[0].rating is None:
        yield PlainCaveat(what="strength_unbounded")
        return
    if common not in (0, everything):
        yield RatedOnFewer(cases=common, of=everything)
    strengths = [place.rating or 0.0 for place in places]
    scores = [place.aggregate.mean or 0.0 for place in places]
    if sorted(strengths, reverse=True) != strengths or (by_pairs and sorted(scores, reverse=True) != scores):
        yield PlainCaveat(what="orders_differ")
