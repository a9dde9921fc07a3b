"""Per-case results: each arm's mean and standard deviation over repeats, for the score and every metric."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import groupby

import msgspec

from fairtrial.analyse.stored_run import StoredRun, TrialRecord


class RepeatSpread(msgspec.Struct, frozen=True):
    """A mean over repeats, with their standard deviation if there are at least two."""

    mean: float
    std_dev: float | None
    count: int


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """One case under one arm. The score is 0–1, metrics are on their own scales; None if nothing was scored."""

    case_id: str
    arm: str
    trials: int
    score: RepeatSpread | None
    metrics: dict[str, RepeatSpread]
    claims: tuple[str, ...]


def case_results(run: StoredRun) -> Iterator[CaseResult]:
    """Yield every case under every arm, in the order of cases and arms."""
    for (case_id, arm), trials in groupby(run.trials(), key=lambda trial: (trial.case_id, trial.arm)):
        yield _result(case_id, arm, list(trials))


def _result(case_id: str, arm: str, trials: list[TrialRecord]) -> CaseResult:
    scored = [trial for trial in trials if trial.score is not None]
    names = dict.fromkeys(name for trial in scored for name in trial.metrics)
    claims = (claim for trial in scored for claim in (trial.details or {}).get("unverified_claims", ()))
    return CaseResult(
        case_id=case_id,
        arm=arm,
        trials=len(trials),
        score=_spread([trial.score for trial in scored if trial.score is not None]),
        metrics={
            name: spread
            for name in names
            if (spread := _spread([trial.metrics[name] for trial in scored if name in trial.metrics])) is not None
        },
        claims=tuple(dict.fromkeys(claims)),
    )


def _spread(values: list[float]) -> RepeatSpread | None:
    if not values:
        return None
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return RepeatSpread(statistics.fmean(values), deviation, len(values))
