"""How a gate would decide about merges that are made up from what is known about an arm: its cases and their noise.

A merge answers every case again. Where nothing has changed, the scores differ from those before by noise alone; a loss
is made of cases that break: each of them scores 0 from then on.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.stats.mean import ALPHA, Mean

Floats = NDArray[np.float64]


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """An arm's cases: mean scores, and deviations from them (cases × answers, NaN where a case has fewer)."""

    means: Floats
    deviations: Floats
    weights: Floats
    clusters: NDArray[np.int64] | None = None

    @property
    def sd(self) -> float:
        """The standard deviation of one answer's score on a case, over all cases."""
        weights = self.weights / self.weights.sum()
        return math.sqrt(float(weights @ np.nanmean(self.deviations**2, axis=1)))

    def resampled(self, rng: np.random.Generator) -> Noise:
        """Return as many cases, drawn from these with replacement; a cluster is drawn as a whole."""
        if self.clusters is None:
            chosen = rng.integers(len(self.means), size=len(self.means))
            clusters = None
        else:
            names = np.unique(self.clusters)
            drawn = rng.choice(names, size=len(names))
            parts = [np.flatnonzero(self.clusters == name) for name in drawn]
            chosen = np.concatenate(parts)
            clusters = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return Noise(
            means=self.means[chosen],
            deviations=self.deviations[chosen],
            weights=self.weights[chosen],
            clusters=clusters,
        )


class Chances(msgspec.Struct, frozen=True, kw_only=True):
    """How often a gate decides which way about merges that lose so much."""

    loss: float
    passed: float
    failed: float

    @property
    def unsure(self) -> float:
        """How often it cannot tell."""
        return max(0.0, 1 - self.passed - self.failed)

    @property
    def flips(self) -> float:
        """How often two gates on the same two versions would disagree."""
        return 1 - self.passed**2 - self.failed**2 - self.unsure**2


def noise_of(scores: list[list[float]], weights: list[float], clusters: list[str] | None = None) -> Noise | None:
    """Return the noise of cases with several answers each; None if no case has two.

    Deviations are scaled so that their variance is right on average: those of few answers from their own mean are too
    small. A case with one answer has none of its own, and is given those of the others in turn.
    """
    several = [values for values in scores if len(values) > 1]
    if not several:
        return None
    own = [_deviations(values) for values in several]
    spare = iter(own * (1 + len(scores) // len(own)))
    rows = [_deviations(values) if len(values) > 1 else next(spare) for values in scores]
    table = np.full((len(rows), max(map(len, rows))), np.nan)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    codes = None if clusters is None else np.unique(clusters, return_inverse=True)[1].astype(np.int64)
    return Noise(
        means=np.asarray([sum(values) / len(values) for values in scores]),
        deviations=table,
        weights=np.asarray(weights, dtype=np.float64),
        clusters=codes,
    )


def _deviations(values: list[float]) -> Floats:
    own = np.asarray(values, dtype=np.float64)
    return np.asarray((own - own.mean()) * math.sqrt(len(own) / (len(own) - 1)))


def chances(
    noise: Noise,
    loss: float,
    *,
    margin: float,
    repeats: int,
    before: int,
    alpha: float = ALPHA,
    merges: int = 400,
    seed: int = 0,
) -> Chances:
    """Return how a gate decides about made-up merges: `repeats` answers to a case, against `before` answers."""
    rng = np.random.default_rng(seed)
    passed = failed = 0
    for _ in range(merges):
        difference = Mean(
            _merge(noise, loss, repeats, before, rng), noise.weights, noise.clusters, bounds=(-1.0, 1.0), span=1.0
        )
        if difference.method not in ("t", "bounded"):
            continue
        passed += 2 * difference.p_above(-margin) < alpha
        failed += 2 * difference.p_below(0.0) < alpha and 2 * difference.p_above(-margin) >= alpha
    return Chances(loss=loss, passed=passed / merges, failed=failed / merges)


def _merge(noise: Noise, loss: float, repeats: int, before: int, rng: np.random.Generator) -> Floats:
    """Return the differences of one merge, case by case."""
    after = noise.means + _drawn(noise.deviations, repeats, rng)
    if loss > 0:
        weights = noise.weights / noise.weights.sum()
        share = min(1.0, loss / float(weights @ noise.means))
        after = np.where(rng.random(len(after)) < share, 0.0, after)
    return np.clip(after - noise.means - _drawn(noise.deviations, before, rng), -1.0, 1.0)


def _drawn(deviations: Floats, answers: int, rng: np.random.Generator) -> Floats:
    """Return the mean deviation of so many answers to every case, drawn from its own."""
    counts = np.sum(~np.isnan(deviations), axis=1)
    at = (rng.random((len(deviations), answers)) * counts[:, None]).astype(np.int64)
    return np.asarray(np.take_along_axis(deviations, at, axis=1).mean(axis=1))


def smallest_caught(
    noise: Noise, *, margin: float, repeats: int, before: int, alpha: float = ALPHA, power: float = 0.8
) -> float | None:
    """Return the smallest loss that is blocked with this power; None if not even the loss of everything is."""
    weights = noise.weights / noise.weights.sum()
    low, high = 0.0, float(weights @ noise.means)
    terms = {"margin": margin, "repeats": repeats, "before": before, "alpha": alpha}

    def caught(loss: float) -> bool:
        return chances(noise, loss, **terms, merges=200).failed >= power  # type: ignore[arg-type]

    if high == 0 or not caught(high):
        return None
    while high - low > 0.005:
        middle = (low + high) / 2
        low, high = (low, middle) if caught(middle) else (middle, high)
    return high
