"""Mean scores by kind of case: every arm of a run on each category, difficulty and tag, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from fairtrial.analyse.stopping import Adjust, adjustments
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.errors import FairtrialError
from fairtrial.core.registry import nearest
from fairtrial.core.showing import Shown
from fairtrial.stats import Aggregate, aggregate
from fairtrial.store import totals
from fairtrial.store.case_kinds import KINDS, Members, column_names, kinds_of_plan
from fairtrial.store.totals import CaseScores

MOST_KINDS = 30  # the largest kinds of each attribute, unless one is asked for by name


class KindMeans(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """Means as means[by][kind][arm], for every arm that has a score on a case of that kind.

    The intervals are those of one arm on its cases of that kind; they are not adjusted for the number of kinds.
    """

    means: dict[str, dict[str, dict[str, Aggregate]]]
    cases: dict[str, dict[str, int]]  # how many cases of the plan are of each kind
    case_count: int  # of the plan
    left_out: dict[str, int]  # kinds with fewer cases than those shown, by attribute


def by_kind(run: StoredRun, by: str | None = None) -> KindMeans:
    """Return the means of a run's arms for each kind of case.

    With `by` (category, difficulty, tag or a column of the dataset), for every kind of that attribute alone.
    """
    members = kinds_of_plan(run.store, run.plan.id, KINDS if by is None else (by,))
    if by is not None and by not in members:
        raise _no_kinds(run, by)
    members, left_out = (members, {}) if by else _largest(members)
    means: dict[str, dict[str, dict[str, Aggregate]]] = {}
    if members:
        scores = totals.case_scores(run.store, run.id, run.plan.id, run.record.scoring)
        adjust, known = adjustments(run.store, run.record, run.plan), [a for a in run.plan_arms if a.position in scores]
        arms = [(arm.name, _CaseMeans(scores[arm.position], adjust(arm.position))) for arm in known]
        means = {name: {kind: _means(arms, cases) for kind, cases in kinds.items()} for name, kinds in members.items()}
    return KindMeans(
        means=means,
        cases={name: {kind: len(cases) for kind, cases in kinds.items()} for name, kinds in members.items()},
        case_count=run.plan.case_count,
        left_out=left_out,
    )


class _CaseMeans:
    """The scores of one arm, found by case."""

    def __init__(self, scores: CaseScores, adjust: Adjust) -> None:
        self._scores, self._adjust = scores, adjust
        self._places = {position: place for place, position in enumerate(scores.positions)}
        self._values, self._weights = np.asarray(scores.means), np.asarray(scores.weights)
        self._clusters = np.asarray(scores.clusters) if scores.clustered else None

    def mean(self, cases: Sequence[int]) -> Aggregate:
        """Return the mean over those of the cases that have a score."""
        own = [self._places[case] for case in cases if case in self._places]
        clusters = None if self._clusters is None else self._clusters[own]
        plain = aggregate(self._values[own], self._weights[own], clusters, alpha=self._adjust.alpha)
        if plain.count < 2:
            return plain  # one case has no interval, whenever the run stopped
        return self._adjust(plain, {self._scores.positions[place]: self._scores.means[place] for place in own}, (0, 1))


def _means(arms: Sequence[tuple[str, _CaseMeans]], cases: Sequence[int]) -> dict[str, Aggregate]:
    means = {name: arm.mean(cases) for name, arm in arms}
    return {name: mean for name, mean in means.items() if mean.count}


def _largest(members: Mapping[str, Members]) -> tuple[dict[str, Members], dict[str, int]]:
    """Return the largest kinds of each attribute in their order, and how many others it has."""
    shown = {}
    for by, kinds in members.items():
        largest = set(sorted(kinds, key=lambda kind: -len(kinds[kind]))[:MOST_KINDS])
        shown[by] = {kind: cases for kind, cases in kinds.items() if kind in largest}
    return shown, {by: len(kinds) - MOST_KINDS for by, kinds in members.items() if len(kinds) > MOST_KINDS}


def _no_kinds(run: StoredRun, by: str) -> FairtrialError:
    """Return an error that says that no case has such an attribute, and which there are."""
    known = [*kinds_of_plan(run.store, run.plan.id, KINDS), *column_names(run.store, run.plan.id)]
    if not known:
        return FairtrialError(
            f"the cases of run {run.id} have no category, difficulty, tags or columns to show means by"
        )
    return FairtrialError(f"no case of run {run.id} has a `{by}`{nearest(by, known)}")
