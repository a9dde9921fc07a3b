"""What solving takes, by arm: cost and tokens per solved trial, and the time to solve; and of two arms, the ratio.

A trial is solved from a score on that the suite states (`solved`), by default full marks. Said of agents, and in
documents also of models whose calls cost something.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from fairtrial.analyse.arm_scores import ArmScores
from fairtrial.analyse.case_table import Floats, Ints
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.settings import AGENT_TIMEOUT
from fairtrial.stats.solving import SolveTimes, per_solved, solve_times, times_dearer
from fairtrial.store import solved as stored
from fairtrial.store.totals import ArmTotals, clusters_of

_MOST_TRIALS = 50_000  # of models: with more, these sums would take longer than the rest of a summary


class PerSolved(msgspec.Struct, frozen=True, kw_only=True):
    """What one solved trial takes: what all trials took, over those that were solved."""

    value: float | None  # None if nothing was solved: it is more than `total`
    ci95: tuple[float, float] | None  # None also where a part is not known
    total: float
    unknown: int = 0  # trials of which it is not known: then value and total are the least


class Solving(msgspec.Struct, frozen=True, kw_only=True):
    """What solving takes an arm."""

    least: float  # the score from which on a trial is solved (0–1)
    trials: int
    solved: int
    agent: bool  # whether a trial is a whole session
    cost_usd: PerSolved | None = None
    tokens: PerSolved | None = None
    seconds: SolveTimes | None = None


class SolvingBoth(msgspec.Struct, frozen=True, kw_only=True):
    """What a solved trial costs two arms on the cases of both; `ratio` is a over b."""

    a: float
    b: float
    ratio: float
    ci95: tuple[float, float] | None
    count: int
    least: float

    def turned(self) -> SolvingBoth:
        """Return the same for b over a."""
        bounds = None if self.ci95 is None else (1 / self.ci95[1], 1 / self.ci95[0])
        return msgspec.structs.replace(self, a=self.b, b=self.a, ratio=1 / self.ratio, ci95=bounds)


class _Sums(NamedTuple):
    """Sums by case of one arm, in the order of `cases`."""

    cases: Ints
    trials: Floats
    solved: Floats
    usd: Floats
    unpaid: Floats
    tokens: Floats
    untold: Floats


def least_score(run: StoredRun) -> float:
    """Return the score from which on a trial of a run is solved."""
    return float(run.settings.get("solved") or 1.0)


def agents_of(run: StoredRun) -> set[int]:
    """Return the positions of the arms whose trials are whole sessions, as recorded when the run began."""
    return {position for position, arm in enumerate(run.context.get("arms") or ()) if arm.get("agent")}


def solving(run: StoredRun, totals: Mapping[int, ArmTotals]) -> dict[int, Solving]:
    """Return what solving takes, by arm position; nothing of arms of which it says nothing."""
    agents, least = agents_of(run), least_score(run)
    agents |= {position for position, total in totals.items() if total.limits}
    dear = {p for p, total in totals.items() if total.cost.charged > 0 and total.stored <= _MOST_TRIALS}
    if not (agents | dear):
        return {}
    clusters = clusters_of(run.store, run.plan.id)
    times = _times(run, agents, least, clusters)
    found = {}
    for position, sums in _sums(run, least).items():
        if position in agents | dear:
            of_cases = _clusters(sums.cases, clusters)
            found[position] = Solving(
                least=least,
                trials=int(sums.trials.sum()),
                solved=int(sums.solved.sum()),
                agent=position in agents,
                cost_usd=_per_solved(sums.usd, sums.unpaid, sums.solved, of_cases),
                tokens=_per_solved(sums.tokens, sums.untold, sums.solved, of_cases),
                seconds=times.get(position),
            )
    return found


def _per_solved(amounts: Floats, unknown: Floats, solved: Floats, clusters: Ints | None) -> PerSolved | None:
    total, missing = float(amounts.sum()), int(unknown.sum())
    if total <= 0:
        return None
    found = per_solved(amounts, solved, clusters)
    return PerSolved(
        value=None if found is None else found.value,
        ci95=None if found is None or missing else found.ci95,
        total=total,
        unknown=missing,
    )


def _sums(run: StoredRun, least: float) -> dict[int, _Sums]:
    batches = list(stored.solved_sums(run.store, run.id, run.record.scoring, least))
    if not batches:
        return {}
    cases, arms, *columns = (
        np.concatenate([np.asarray(one[n], dtype=np.float64) for one in batches]) for n in range(8)
    )
    return {
        int(arm): _Sums(cases[arms == arm].astype(np.int64), *(column[arms == arm] for column in columns))
        for arm in np.unique(arms)
    }


def _times(run: StoredRun, agents: set[int], least: float, clusters: Mapping[int, int]) -> dict[int, SolveTimes]:
    """Return how soon the trials of agents were solved; all have the same horizon, so that they can be compared."""
    batches = list(stored.solve_times(run.store, run.id, run.record.scoring, least, sorted(agents))) if agents else []
    if not batches:
        return {}
    cases, arms, ms, right = (
        np.concatenate([np.asarray(one[n], dtype=np.float64) for one in batches]) for n in range(4)
    )
    horizon = max(float(run.settings.get("timeout") or AGENT_TIMEOUT), float(ms.max()) / 1000)
    found = {}
    for arm in np.unique(arms):
        own = arms == arm
        of_cases = _clusters(cases[own].astype(np.int64), clusters)
        times = solve_times(ms[own] / 1000, right[own] > 0, cases[own], horizon, of_cases)
        if times is not None:
            found[int(arm)] = times
    return found


def _clusters(cases: Ints, clusters: Mapping[int, int]) -> Ints | None:
    """Return the clusters of cases, each without one in its own; None if there are none."""
    return np.asarray([clusters.get(int(case), -1 - int(case)) for case in cases]) if clusters else None


def solving_both(a: ArmScores, b: ArmScores, clusters: Any = None) -> SolvingBoth | None:
    """Compare what a solved trial costs two agents; None if one of them solved nothing, or a cost is not known."""
    if not all(position in agents_of(run) for arm in (a, b) for run, _, position in arm.origins):
        return None
    least = {least_score(run) for arm in (a, b) for run, _, _ in arm.origins}
    if len(least) != 1:
        return None
    one, other = _of_table(a, *least), _of_table(b, *least)
    both = np.flatnonzero((one[0] > 0) & (other[0] > 0))
    if one[3][both].any() or other[3][both].any():
        return None
    own = None if clusters is None else clusters[both]
    usd, solved = (one[2][both], other[2][both]), (one[1][both], other[1][both])
    ratio = times_dearer(usd, solved, own)
    values = [per_solved(*each, own) for each in zip(usd, solved, strict=True)]
    if ratio is None or values[0] is None or values[1] is None:
        return None
    return SolvingBoth(
        a=values[0].value, b=values[1].value, ratio=ratio.value, ci95=ratio.ci95, count=len(both), least=least.pop()
    )


def _of_table(arm: ArmScores, least: float) -> Floats:
    """Return by case of the table: trials, solved, cost, and how many costs are not known."""
    found = np.zeros((4, len(arm.failed)))
    for run, rows, position in arm.origins:
        sums = _sums(run, least).get(position)
        if sums is not None:
            at = rows[sums.cases]
            for row, column in enumerate((sums.trials, sums.solved, sums.usd, sums.unpaid)):
                found[row, at] += column
    return found
