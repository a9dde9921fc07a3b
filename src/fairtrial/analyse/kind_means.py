"""Mean scores by kind of case: every arm of a run on each category and difficulty, with intervals."""

from __future__ import annotations

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.stats import Aggregate, aggregate

BY = ("category", "difficulty")


class KindMeans(msgspec.Struct, frozen=True, kw_only=True):
    """Means as means[by][kind][arm], for every arm that has a score on a case of that kind."""

    means: dict[str, dict[str, dict[str, Aggregate]]]


def by_kind(run: Run) -> KindMeans:
    """Return the means of a run's arms for each kind of case."""
    scores = read_scores(sources_of(run))
    means: dict[str, dict[str, dict[str, Aggregate]]] = {}
    for arm in scores.arms:
        values = arm.means()
        for by in BY:
            groups: dict[str, list[str]] = {}
            for key in values:
                kind = getattr(scores.facts[key], by)
                if kind is not None and scores.weights[key] > 0:
                    groups.setdefault(kind, []).append(key)
            for kind, keys in groups.items():
                clusters = [scores.clusters.get(key, f"\0{key}") for key in keys] if scores.clusters else None
                arm_mean = aggregate([values[key] for key in keys], [scores.weights[key] for key in keys], clusters)
                means.setdefault(by, {}).setdefault(kind, {})[arm.label] = arm_mean
    return KindMeans(means=means)
