"""What to know before trusting a comparison, a ranking or a gate: facts, which `present/words/caveats.py` words."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from fairtrial.analyse.asked import AskedCases
from fairtrial.core.showing import ResultFact
from fairtrial.stats.units import Interval, Measured


class _Caveat(ResultFact, frozen=True, kw_only=True):
    subject: ClassVar = "caveats"


class PlainCaveat(_Caveat, frozen=True, kw_only=True):
    """A fact without numbers."""

    what: Literal[
        "interval_bounded",  # it allows for what other cases could show
        "interval_rough",  # few cases account for the difference, and no scale bounds it
        "scored_differently",
        "stopping_allowed_for",  # a run could stop as soon as it was sure
        "stopping_ignored",
        "noise_unknown",  # a judge scored one answer per case
        "earlier_unused",  # the earlier run that was named cannot be a control variate
        "style_confounded",  # an arm's answers differ from the others always in the same way
        "strength_unbounded",  # some arms only win or only lose
        "orders_differ",  # by scores and by ratings
        "ratings_left_out",  # they cannot allow for a run that could stop
        "battles_do_not_fit",  # one strength for each arm
        "too_many_to_rate",
        "means_only",  # categories and guards were not checked
    ]


class CountCaveat(_Caveat, frozen=True, kw_only=True):
    """A fact about a number of cases, or of clusters."""

    what: Literal[
        "few_cases",
        "few_clusters",
        "corrected_by_labels",
        "corrected_by_second_judge",
        "weighted_unevenly",
        "matched_by_question",
        "looks_allowed_for",  # as many
        "looked_again",  # which time, after cases were added
    ]
    count: int


class AgainstFirst(_Caveat, frozen=True, kw_only=True):
    """Of these very many pairs, only those with the first arm are compared."""

    pairs: int


class DifferentCases(_Caveat, frozen=True, kw_only=True):
    """The runs have different cases; pairs of arms have from `fewest` to `most` in common."""

    fewest: int
    most: int


class RepeatedQuestions(_Caveat, frozen=True, kw_only=True):
    """Some cases of a plan repeat the question of another one."""

    repeated: int
    cases: int


class HeavyUnits(_Caveat, frozen=True, kw_only=True):
    """A few cases, or clusters, carry most of the weight: they count as fewer, `effective`, of equal weight."""

    count: int
    effective: float
    clusters: bool


class TellingWeights(_Caveat, frozen=True, kw_only=True):
    """Weights and differences of a pair grow together, or apart: an unseen case may be a heavy one.

    The difference and its interval are those with equal weights.
    """

    arms: tuple[str, str]
    metric: str
    difference: Measured
    ci95: Interval | None


class UnevenCoverage(_Caveat, frozen=True, kw_only=True):
    """Two arms have scores for different shares of their trials, the first for more of them."""

    arms: tuple[str, str]
    shares: tuple[float, float]
    failures: bool


class RecordingFavours(_Caveat, frozen=True, kw_only=True):
    """What was recorded of servers lacks calls of one arm, the second, more often than of another one.

    The shares are of trials that lost their score to that.
    """

    arms: tuple[str, str]
    shares: tuple[float, float]


class ForeignRun(_Caveat, frozen=True, kw_only=True):
    """A run of another tool, and what that did not record."""

    run: str
    tool: str
    unknown: list[str]


class Unfinished(_Caveat, frozen=True, kw_only=True):
    """A run that may still change, and which of its cases it has asked, if not all."""

    run: str
    status: str
    asked: AskedCases | None
    alone: bool  # there is no other run that could be meant


class Unranked(_Caveat, frozen=True, kw_only=True):
    """Arms without a score."""

    arms: list[str]


class ComparedApart(_Caveat, frozen=True, kw_only=True):
    """Groups of arms that were never compared with each other."""

    groups: list[list[str]]


class RatedOnFewer(_Caveat, frozen=True, kw_only=True):
    """Ratings are from the cases that every arm has."""

    cases: int
    of: int


class GateChanged(_Caveat, frozen=True, kw_only=True):
    """Which demands of a gate are others than in the baseline."""

    baseline: str
    demands: list[str]


Caveat: TypeAlias = (
    PlainCaveat | CountCaveat | AgainstFirst | DifferentCases | RepeatedQuestions | HeavyUnits
    | TellingWeights | UnevenCoverage | RecordingFavours
    | ForeignRun | Unfinished | Unranked | ComparedApart | RatedOnFewer | GateChanged
)  # fmt: skip
