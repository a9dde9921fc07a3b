"""How a gate would decide about merges that are made up from what is known about an arm: its cases and their noise.

A merge answers every case again. Where nothing has changed, the scores differ from those before by noise alone; a loss
is made of cases that break: each of them scores 0 from then on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.stats.mean import ALPHA, Mean

Floats = NDArray[np.float64]
_MERGES = 200  # that show whether a loss is caught
_ROUNDING = 1e-12  # a variance below this comes from sums of rounded numbers


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """An arm's cases: mean scores, and the standard deviation of a single answer's score around them."""

    means: Floats
    sds: Floats
    weights: Floats
    clusters: NDArray[np.int64] | None = None

    @property
    def sd(self) -> float:
        """The standard deviation of one answer's score on a case, over all cases."""
        weights = self.weights / self.weights.sum()
        return math.sqrt(float(weights @ self.sds**2))

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
            sds=self.sds[chosen],
            weights=self.weights[chosen],
            clusters=clusters,
        )


class Chances(msgspec.Struct, frozen=True, kw_only=True):
    """How often a gate decides which way about merges that lose this much."""

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


def noise_of(
    counts: NDArray[np.int64],
    sums: Floats,
    squares: Floats,
    weights: Floats,
    clusters: NDArray[np.int64] | None = None,
) -> Noise | None:
    """Return the noise of cases, from the number, sum and sum of squares of their scores; None if no case has two.

    A case with a single answer gets the noise of the others.
    """
    several = counts > 1
    if not np.any(several):
        return None
    means = sums / counts
    variances = np.maximum(0.0, squares - counts * means**2) / np.maximum(1, counts - 1)
    variances[variances < _ROUNDING] = 0.0
    variances[~several] = variances[several].mean()
    return Noise(means=means, sds=np.sqrt(variances), weights=weights, clusters=clusters)


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
    decided = Counter(_decisions(noise, loss, margin, repeats, before, alpha, merges, seed))
    return Chances(loss=loss, passed=decided["passed"] / merges, failed=decided["failed"] / merges)


def _decisions(
    noise: Noise, loss: float, margin: float, repeats: int, before: int, alpha: float, merges: int, seed: int = 0
) -> Iterator[str]:
    """Yield what is decided about one merge after the other."""
    rng = np.random.default_rng(seed)
    for _ in range(merges):
        difference = Mean(
            _merge(noise, loss, repeats, before, rng),
            noise.weights,
            noise.clusters,
            bounds=(-1.0, 1.0),
            span=1.0,
            one_sided=True,
        )
        if not difference.exists:
            yield "nothing"
        elif 2 * difference.p_above(-margin) < alpha:
            yield "passed"
        else:
            yield "failed" if 2 * difference.p_below(0.0) < alpha else "unsure"


def _merge(noise: Noise, loss: float, repeats: int, before: int, rng: np.random.Generator) -> Floats:
    after = noise.means + _drawn(noise.sds, repeats, rng)
    if loss > 0:
        weights = noise.weights / noise.weights.sum()
        share = min(1.0, loss / float(weights @ noise.means))
        after = np.where(rng.random(len(after)) < share, 0.0, after)
    return np.clip(after - noise.means - _drawn(noise.sds, before, rng), -1.0, 1.0)


def _drawn(sds: Floats, answers: int, rng: np.random.Generator) -> Floats:
    """Return the mean deviation of this many answers to every case, each above or below by one standard deviation."""
    above = rng.binomial(answers, 0.5, len(sds))
    return np.asarray(sds * (2 * above / answers - 1))


def smallest_caught(
    noise: Noise, *, margin: float, repeats: int, before: int, alpha: float = ALPHA, power: float = 0.8
) -> float | None:
    """Return the smallest loss that is blocked with this power; None if not even the loss of everything is."""
    weights = noise.weights / noise.weights.sum()
    low, high = 0.0, float(weights @ noise.means)

    def caught(loss: float) -> bool:
        failed = 0
        for made, decided in enumerate(_decisions(noise, loss, margin, repeats, before, alpha, _MERGES), 1):
            failed += decided == "failed"
            if failed / _MERGES >= power or (failed + _MERGES - made) / _MERGES < power:  # whatever the others are
                break
        return failed / _MERGES >= power

    if high == 0 or not caught(high):
        return None
    while high - low > 0.005:
        middle = (low + high) / 2
        low, high = (low, middle) if caught(middle) else (middle, high)
    return high
