"""The board of pairwise opinions: ratings of arms from people's votes or judges' verdicts, without any score.

It reads votes alone, so it can be shown anew after every vote, however large a run is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from fairtrial.analyse.battles import Battles, By, pair_rows
from fairtrial.analyse.case_table import Ints
from fairtrial.analyse.leaderboard import brackets
from fairtrial.analyse.rank import Table, better_by_rating, fits, gap_intervals, open_ranks, rated
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.many_arms import MOST_RATED, is_large
from fairtrial.stats import Ratings
from fairtrial.stats.correction import wilson
from fairtrial.stats.units import Interval, Measured
from fairtrial.store.opinions import judges_asked
from fairtrial.store.votes import has_pairs, judged_votes, pair_count

Pair = tuple[str, int, int, int, int]  # run, case, repeat, one arm, other arm


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """How often those who chose prefer an arm to another, 0–1, as the ratings have it."""

    share: Measured
    ci95: Interval | None
    decided: bool  # whether one of the two is better, over all pairs of arms together


class BoardArm(msgspec.Struct, frozen=True, kw_only=True):
    """One arm, with the best and worst rank that the ratings allow."""

    label: str
    battles: int
    won: int
    lost: int
    rank: int
    worst_rank: int
    rating: Measured | None = None
    ci95: Interval | None = None
    to_first: Preference | None = None  # of the first arm over this one


class Concord(msgspec.Struct, frozen=True, kw_only=True):
    """How often judges preferred the answer that people chose, among the votes in which both preferred one."""

    agreed: int
    decided: int
    ci95: Interval | None
    judge: bool  # whether judges gave the scores, not a scorer that computes them


class PairBoard(msgspec.Struct, frozen=True, kw_only=True):
    """Every arm that was compared, strictly by its rating, and which arms are better than which others."""

    by: By
    battles: int
    prompts: int
    voters: int
    pairs: int  # pairs of answers to the same case
    compared: int  # those with at least one vote or verdict
    arms: list[BoardArm]  # by their wins and losses where nothing can be rated
    better: list[tuple[str, str]]  # pairs that are decided, the better arm first
    idle: list[str]  # arms without any battle
    concord: Concord | None
    rated: bool
    apart: list[list[str]]  # groups of arms that were never compared with each other, if there are several
    circular: bool = False  # whether no strengths of the arms, one each, explain who was preferred to whom

    @property
    def leading(self) -> list[BoardArm]:
        """Return the arms that may be first: no arm is better than they are."""
        return [arm for arm in self.arms if arm.rank == 1]

    @property
    def front(self) -> set[str]:
        """Return the arms that a picture sets off: those that may be first, unless every arm may."""
        return {arm.label for arm in self.leading} if len(self.leading) < len(self.arms) else set()

    @property
    def brackets(self) -> list[list[str]]:
        """Return the largest groups of arms of which no two can be separated; none where nothing is, or of many."""
        decided = {frozenset(pair) for pair in self.better}
        if not decided or is_large(math.comb(len(self.arms), 2)):
            return []
        return brackets([arm.label for arm in self.arms], lambda a, b: {a, b} in decided)


def pair_board(runs: Sequence[StoredRun], by: By) -> PairBoard:
    """Rate the arms of runs, which are the same where their names are, by people's votes, judges' verdicts or both."""
    names = list(dict.fromkeys(arm.name for run in runs for arm in run.plan_arms))
    rows = [(run, row) for run in runs for row in pair_rows(run, by)]
    compared: set[Pair] = {
        (run.id, row["case_position"], row["repeat"], row["arm_one"], row["arm_other"]) for run, row in rows
    }
    battles = [
        (run.plan_arms[row["arm_one"]].name, run.plan_arms[row["arm_other"]].name, row["worth"],
         f"{run.plan.id}:{row['case_position']}")
        for run, row in rows
    ]  # fmt: skip
    fought = {name for one, other, _, _ in battles for name in (one, other)}
    players = [name for name in names if name in fought]
    found = _rated_arms(players, battles)
    return PairBoard(
        by=by,
        battles=len(battles),
        prompts=len({prompt for *_, prompt in battles}),
        voters=len({row["voter"] for _, row in rows if "voter" in row}),
        pairs=sum(pair_count(run.store, run.id) for run in runs),
        compared=len(compared),
        arms=found.arms,
        better=found.better,
        idle=[name for name in names if name not in fought],
        concord=_concord(runs, [(run, row) for run, row in rows if "voter" in row]),
        rated=found.rated,
        apart=found.apart,
        circular=found.circular,
    )


class _Rated(NamedTuple):
    """What battles say of the arms; without ratings, why there are none."""

    arms: list[BoardArm]
    better: list[tuple[str, str]] = []
    rated: bool = False
    apart: list[list[str]] = []
    circular: bool = False


def _rated_arms(players: list[str], battles: Sequence[tuple[str, str, float, str]]) -> _Rated:
    """Rate the arms, if there is enough to go by."""
    if not players:
        return _Rated([])
    position = {name: number for number, name in enumerate(players)}
    columns = Battles(
        [position[one] for one, *_ in battles],
        [position[other] for _, other, *_ in battles],
        [worth for _, _, worth, _ in battles],
        [prompt for *_, prompt in battles],
    )
    fought, won, lost = _counts(columns, len(players))
    if len(players) > MOST_RATED:
        return _Rated(_unrated(players, fought, won, lost))
    ratings = rated(columns, len(players), fit=True)
    if not fits(ratings):
        return _Rated(_unrated(players, fought, won, lost), circular=True)
    groups = [[name for name, own in zip(players, ratings.groups, strict=True) if own == group]
              for group in dict.fromkeys(ratings.groups)]  # fmt: skip
    if not ratings.bounded:
        return _Rated(_unrated(players, fought, won, lost), apart=groups if len(groups) > 1 else [])
    better = better_by_rating(ratings)
    order = sorted(range(len(players)), key=lambda number: -ratings.ratings[number])
    preferences = _preferences(ratings, order[0], better)
    arms = [
        _arm(players[number], number, ratings, better, preferences.get(number), fought, won, lost) for number in order
    ]
    decided = [(players[one], players[other]) for one in order for other in order if better[one, other]]
    return _Rated(arms, decided, rated=True)


def _counts(battles: Battles, players: int) -> tuple[Ints, Ints, Ints]:
    """Return how many battles each arm had, won and lost."""
    one, other, worth = np.asarray(battles.one), np.asarray(battles.other), np.asarray(battles.worth)
    decided = worth != 0.5
    winners, losers = np.where(worth > 0.5, one, other)[decided], np.where(worth > 0.5, other, one)[decided]
    fought = np.bincount(np.concatenate([one, other]), minlength=players)
    return fought, np.bincount(winners, minlength=players), np.bincount(losers, minlength=players)


def _unrated(players: list[str], fought: Ints, won: Ints, lost: Ints) -> list[BoardArm]:
    arms = [
        BoardArm(
            label=name, battles=int(fought[number]), won=int(won[number]), lost=int(lost[number]), rank=1,
            worst_rank=len(players),
        )
        for number, name in enumerate(players)
    ]  # fmt: skip
    return sorted(arms, key=lambda arm: (arm.lost - arm.won, -arm.battles))


def _arm(
    label: str,
    number: int,
    ratings: Ratings,
    better: Table,
    to_first: Preference | None,
    fought: Ints,
    won: Ints,
    lost: Ints,
) -> BoardArm:
    rank, worst = open_ranks(better, number)
    return BoardArm(
        label=label,
        battles=int(fought[number]),
        won=int(won[number]),
        lost=int(lost[number]),
        rank=rank,
        worst_rank=worst,
        rating=ratings.ratings[number],
        ci95=ratings.intervals[number] if ratings.intervals else None,
        to_first=to_first,
    )


def _preferences(ratings: Ratings, first: int, better: Table) -> dict[int, Preference]:
    """Return how often the first arm is preferred to each other one, with the interval that the verdict is read off."""
    intervals, preferences = gap_intervals(ratings), {}
    for gap in ratings.gaps:
        if first not in (gap.one, gap.other):
            continue
        other, sign = (gap.other, 1) if gap.one == first else (gap.one, -1)
        bounds = intervals.get((gap.one, gap.other))
        ends = None if bounds is None else sorted(_share(sign * bound) for bound in bounds)
        preferences[other] = Preference(
            share=_share(sign * gap.difference),
            ci95=None if ends is None else (ends[0], ends[1]),
            decided=bool(better[first, other]),
        )
    return preferences


def _share(log_odds: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, log_odds))))


def _concord(runs: Sequence[StoredRun], votes: Sequence[tuple[StoredRun, dict[str, Any]]]) -> Concord | None:
    """Return how often judges, or scores, preferred the same answer; None if no vote allows that."""
    judged = {run.id: judged_votes(run.store, run.record) for run in runs} if votes else {}
    pairs = [(row["worth"], judged[run.id].get(row["id"], 0.5)) for run, row in votes]
    both = [(vote, judge) for vote, judge in pairs if 0.5 not in (vote, judge)]
    if not both:
        return None
    agreed = sum((vote > 0.5) == (judge > 0.5) for vote, judge in both)
    bounds = wilson(agreed / len(both), len(both)) if len(both) > 1 else None
    return Concord(agreed=agreed, decided=len(both), ci95=bounds, judge=any(has_judge(run) for run in runs))


def has_judge(run: StoredRun) -> bool:
    """Return whether judges scored a run's answers or compared them."""
    return bool(judges_asked(run.store, run.id, run.record.scoring)) or has_pairs(run.store, run.id)
