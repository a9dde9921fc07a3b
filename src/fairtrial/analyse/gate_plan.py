"""What a gate will be able to decide, before anything is spent on it; and how often it would contradict itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from fairtrial.analyse.gate_settle import answers as answers_of
from fairtrial.analyse.gate_terms import DEFAULT_MARGIN, Terms
from fairtrial.analyse.planning import cases_to_pass
from fairtrial.analyse.score_table import SCORE, ArmScores, RunSource, ScoreTable, pick, read_scores
from fairtrial.core.errors import FairtrialError
from fairtrial.stats.mean import ALPHA
from fairtrial.stats.merges import Chances, Noise, chances, noise_of, smallest_caught
from fairtrial.stats.units import Measured

_LOSSES = (0.5, 1.0, 2.0, 4.0)  # that a plan shows, in margins
_POSSIBLE = 0.01  # an unchanged merge that passes less often than this never passes, for people
_MOST_FLIPS = 0.1  # a suite is too noisy for a gate that disagrees with itself more often
_RESAMPLES, _MERGES = 60, 60  # of the cases, and of merges on each
_NOISY = 5  # cases to name


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """How a gate will decide about merges that lose `loss`. Numbers are 0–1."""

    loss: Measured
    passed: float
    failed: float
    unsure: float


class ArmPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate can decide about one arm."""

    arm: str
    cases: int
    repeats: int  # of the run to come
    before: int  # of the run that it is compared with
    noise_sd: Measured  # of one answer's score on a case
    outlooks: list[Outlook]  # the first is of merges that change nothing
    caught: Measured | None  # the smallest loss that is blocked in 4 of 5 merges
    cases_needed: int  # with which 4 of 5 merges that change nothing pass


class GatePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate with these cases, repeats and this margin can decide."""

    run_ids: list[str]
    margin: Measured
    alpha: float  # for each arm: 5 % divided by the number of arms
    arms: list[ArmPlan]


class Noisy(msgspec.Struct, frozen=True, kw_only=True):
    """A case whose scores vary from answer to answer."""

    case: str
    low: Measured
    high: Measured
    answers: int


class ArmAgainstItself(msgspec.Struct, frozen=True, kw_only=True):
    """How a gate decides about an arm against itself."""

    arm: str
    cases: int
    repeats: int
    passed: float
    failed: float
    unsure: float
    flips: float  # how often two gates on the same two versions disagree
    flips_ci95: tuple[float, float]
    too_noisy: bool
    noisy: list[Noisy]
    cases_needed: int  # with which 19 of 20 such gates pass


class AgainstItself(msgspec.Struct, frozen=True, kw_only=True):
    """How often a gate on unchanged input would change its verdict."""

    run_ids: list[str]
    margin: Measured
    arms: list[ArmAgainstItself]


def plan_gate(source: RunSource, terms: Terms, *, repeats: int | None = None) -> GatePlan:
    """Say what a gate against this run will be able to decide."""
    scores, margin = read_scores([source]), _margin(terms)
    known = _known(scores, terms)
    alpha = ALPHA / len(known)
    arms = [_arm_plan(entry, noise, margin, alpha, repeats) for entry, noise in known]
    for arm in arms:
        if arm.outlooks[0].passed < _POSSIBLE:
            raise FairtrialError(
                f"impossible with {arm.cases} cases: a merge that changes nothing would never pass a margin of "
                f"{100 * margin:g} points for {arm.arm}; use about {arm.cases_needed:,} cases, or a larger margin"
            )
    return GatePlan(run_ids=[run.id for run in source.runs], margin=margin, alpha=alpha, arms=arms)


def gate_against_itself(source: RunSource, terms: Terms) -> AgainstItself:
    """Say how often a gate on unchanged input would decide one way and then another."""
    scores, margin = read_scores([source]), _margin(terms)
    known = _known(scores, terms)
    arms = [_against_itself(scores, entry, noise, margin, ALPHA / len(known)) for entry, noise in known]
    return AgainstItself(run_ids=[run.id for run in source.runs], margin=margin, arms=arms)


def _margin(terms: Terms) -> float:
    if terms.metric != SCORE:
        raise FairtrialError("plans are for scores: leave out --metric")
    margin = DEFAULT_MARGIN if terms.margin is None else terms.margin
    if not 0 < margin < 1:
        raise FairtrialError("a plan needs a margin above 0 and below 100 points")
    return margin


def _known(scores: ScoreTable, terms: Terms) -> list[tuple[ArmScores, Noise]]:
    """Return every arm whose noise is known."""
    arms: Sequence[ArmScores] = [pick(scores, name) for name in terms.arms] or scores.arms
    known = [(entry, noise) for entry in arms if (noise := _noise(scores, entry)) is not None]
    if not known:
        raise FairtrialError(
            "every case has one answer, so it is unknown how much scores vary by chance: run the suite with "
            "--repeats 2 or more, or twice with --runs 2, and name that run or series"
        )
    return known


def _noise(scores: ScoreTable, entry: ArmScores) -> Noise | None:
    column = entry.values[SCORE]
    rows = np.flatnonzero((column.counts > 0) & (scores.weights > 0))
    clusters = None if scores.clusters is None else scores.clusters[rows]
    return noise_of(column.counts[rows], column.sums[rows], entry.spread.squares[rows], scores.weights[rows], clusters)


def _arm_plan(entry: ArmScores, noise: Noise, margin: float, alpha: float, repeats: int | None) -> ArmPlan:
    before = answers_of(entry)
    terms: dict[str, Any] = {"margin": margin, "repeats": repeats or before, "before": before, "alpha": alpha}
    weights = noise.weights / noise.weights.sum()
    most = float(weights @ noise.means)  # nobody can lose more
    losses = [0.0, *(share * margin for share in _LOSSES if share * margin <= most)]
    return ArmPlan(
        arm=entry.arm.name,
        cases=len(noise.means),
        repeats=terms["repeats"],
        before=before,
        noise_sd=noise.sd,
        outlooks=[_outlook(chances(noise, loss, **terms)) for loss in losses],
        caught=smallest_caught(noise, **terms),
        cases_needed=_cases_needed(noise, terms["repeats"], before, margin, alpha),
    )


def _outlook(found: Chances) -> Outlook:
    return Outlook(loss=found.loss, passed=found.passed, failed=found.failed, unsure=found.unsure)


def _cases_needed(noise: Noise, repeats: int, before: int, margin: float, alpha: float, beta: float = 0.2) -> int:
    spread = noise.sd * math.sqrt(1 / repeats + 1 / before)
    if spread == 0:  # then the interval is as narrow as this many equal cases allow
        return math.ceil(math.log(alpha / 2) / math.log(1 - margin))
    return cases_to_pass(spread, margin, alpha=alpha, beta=beta, pilot=len(noise.means))


def _against_itself(
    scores: ScoreTable, entry: ArmScores, noise: Noise, margin: float, alpha: float
) -> ArmAgainstItself:
    answers = answers_of(entry)
    terms: dict[str, Any] = {"margin": margin, "repeats": answers, "before": answers, "alpha": alpha}
    found = chances(noise, 0.0, **terms, merges=1000)
    rng = np.random.default_rng(0)
    flips = [chances(noise.resampled(rng), 0.0, **terms, merges=_MERGES, seed=seed).flips for seed in range(_RESAMPLES)]
    low, high = np.quantile(flips, [0.025, 0.975])
    return ArmAgainstItself(
        arm=entry.arm.name,
        cases=len(noise.means),
        repeats=answers,
        passed=found.passed,
        failed=found.failed,
        unsure=found.unsure,
        flips=found.flips,
        flips_ci95=(min(float(low), found.flips), max(float(high), found.flips)),
        too_noisy=found.flips > _MOST_FLIPS,
        noisy=list(_noisiest(scores, entry)),
        cases_needed=_cases_needed(noise, answers, answers, margin, alpha, beta=_MOST_FLIPS / 2),
    )


def _noisiest(scores: ScoreTable, entry: ArmScores) -> Iterator[Noisy]:
    column, spread = entry.values[SCORE], entry.spread
    ranges = np.where(column.counts > 1, spread.highest - spread.lowest, 0.0)
    for row in np.argsort(-ranges, kind="stable")[:_NOISY]:
        if ranges[row] > 0:
            yield Noisy(
                case=scores.facts[int(row)].id,
                low=float(spread.lowest[row]),
                high=float(spread.highest[row]),
                answers=int(column.counts[row]),
            )
