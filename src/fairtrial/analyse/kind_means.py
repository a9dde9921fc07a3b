"""Every arm of a run by kind of case: its mean on each category and each difficulty, with intervals."""

from __future__ import annotations

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.stats import Aggregate, aggregate

BY = ("category", "difficulty")


class KindMeans(msgspec.Struct, frozen=True, kw_only=True):
    """means[by][kind][arm]; every arm that has a score on a case of the kind."""

    means: dict[str, dict[str, dict[str, Aggregate]]]


def by_kind(run: Run) -> KindMeans:
    """The means of a run's arms, kind by kind."""
    scores = read_scores(sources_of(run))
    means: dict[str, dict[str, dict[str, Aggregate]]] = {}
    for one in scores.arms:
        values = one.means()
        for by in BY:
            groups: dict[str, list[str]] = {}
            for key in values:
                kind = getattr(scores.facts[key], by)
                if kind is not None and scores.weights[key] > 0:
                    groups.setdefault(kind, []).append(key)
            for kind, keys in groups.items():
                clusters = [scores.clusters.get(key, f"\0{key}") for key in keys] if scores.clusters else None
                found = aggregate([values[key] for key in keys], [scores.weights[key] for key in keys], clusters)
                means.setdefault(by, {}).setdefault(kind, {})[one.label] = found
    return KindMeans(means=means)
