"""What scores look like: regimes in which tests and intervals are tried, easy ones and those in which many fail.

Every regime draws differences of two arms whose true mean is 0, or scores of one arm whose true mean is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rng = np.random.Generator


class Sample(NamedTuple):
    """Values of cases, what each weighs, and which belong together."""

    values: Floats
    weights: Floats | None = None
    clusters: NDArray[np.int64] | None = None


class Regime(NamedTuple):
    """A way to draw samples. Values lie within the bounds; `span` is a full flip of a score."""

    what: str
    draw: Callable[[Rng], Sample]
    truth: float = 0.0
    bounds: tuple[float, float] = (-1.0, 1.0)
    span: float = 1.0


# -- differences of two arms ----------------------------------------------------------------------


def binary(rng: Rng, n: int, repeats: tuple[int, int] = (1, 1)) -> tuple[Floats, Floats]:
    """Right or wrong; cases differ in difficulty, and each arm finds other cases difficult."""
    chances = np.clip(rng.beta(2, 2, (2, n)) * 0.5 + rng.beta(2, 2, n) * 0.5, 0, 1)
    counts = [rng.integers(repeats[0], repeats[1] + 1, n) for _ in range(2)]
    a, b = (rng.binomial(count, chance) / count for count, chance in zip(counts, chances, strict=True))
    return a, b


def marks(rng: Rng, n: int, noise: float = 0.2) -> tuple[Floats, Floats]:
    """Marks of 0–1 that cannot leave the scale, skewed towards the top."""
    base = rng.beta(4, 1.5, n)
    a, b = (np.clip(base + rng.normal(0, noise, n), 0, 1) for _ in range(2))
    return a, b


def lopsided(rng: Rng, n: int, share: float) -> Floats:
    """One difference in so many, large; all others tiny and the other way: a mean of 0."""
    return np.where(rng.random(n) < share / (1 + share), 1.0, -share)


def sizes_of(rng: Rng, kind: str, count: int) -> NDArray[np.int64]:
    """How many cases each cluster has."""
    if kind == "equal":
        return np.full(count, 10)
    if kind == "one of 60 among 3s":
        return np.r_[60, np.full(count - 1, 3)]
    spread = 1.5 if "1.5" in kind else 1.0
    return np.maximum(1, np.round(rng.lognormal(1, spread, count))).astype(np.int64)


def clustered(rng: Rng, kind: str, count: int) -> Sample:
    """Cases in clusters; an arm's luck is shared within one."""
    sizes = sizes_of(rng, kind, count)
    groups = np.arange(count).repeat(sizes)
    luck = rng.normal(0, 0.25, count)[groups]
    return Sample(np.clip(luck + rng.normal(0, 0.2, len(groups)), -1, 1), None, groups)


def weighted(rng: Rng, n: int, spread: float) -> Sample:
    a, b = binary(rng, n)
    return Sample(a - b, rng.lognormal(0, spread, n))


def pairs() -> list[Regime]:
    """Differences of two arms that do not differ."""
    found = [
        *(Regime(f"right or wrong, {n} cases", lambda r, n=n: _gap(binary(r, n))) for n in (5, 10, 20, 50, 200)),
        *(Regime(f"marks, {n} cases", lambda r, n=n: _gap(marks(r, n))) for n in (5, 10, 20, 50, 200)),
        *(Regime(f"marks that hardly differ, {n} cases", lambda r, n=n: _gap(marks(r, n, 0.05))) for n in (20, 100)),
        Regime("1 to 5 repeats a case, 60 cases", lambda r: _gap(binary(r, 60, (1, 5)))),
    ]
    for share, counts in ((0.05, (5, 20, 50, 100)), (0.02, (20, 50, 100, 200))):
        found += [
            Regime(f"one large in {1 / share:.0f}, {n} cases", lambda r, n=n, s=share: Sample(lopsided(r, n, s)))
            for n in counts
        ]
    for kind in ("equal", "lognormal sizes", "lognormal sizes 1.5", "one of 60 among 3s"):
        found += [
            Regime(f"{n} clusters, {kind}", lambda r, n=n, k=kind: clustered(r, k, n)) for n in (5, 8, 10, 20, 40)
        ]
    found += [
        Regime(f"lognormal weights ({s:g}), {n} cases", lambda r, n=n, s=s: weighted(r, n, s))
        for s, n in ((1.0, 10), (1.0, 30), (1.0, 100), (1.5, 30))
    ]
    return found


def _gap(arms: tuple[Floats, Floats]) -> Sample:
    return Sample(arms[0] - arms[1])


# -- scores of one arm ----------------------------------------------------------------------------


def catastrophes(rng: Rng, n: int) -> Sample:
    """Nearly perfect, with 5 % disasters."""
    return Sample(np.where(rng.random(n) < 0.05, 0.0, 0.98))


def clustered_scores(rng: Rng, count: int) -> Sample:
    groups = np.arange(count).repeat(sizes_of(rng, "lognormal sizes", count))
    chance = rng.beta(4, 1, count)[groups]
    return Sample((rng.random(len(groups)) < chance).astype(float), None, groups)


def one_arm() -> list[Regime]:
    """Scores with a known mean."""
    keys = {"bounds": (0.0, 1.0), "span": 1.0}
    found = [
        Regime(f"right or wrong ({p:g}), {n} cases", lambda r, p=p, n=n: Sample((r.random(n) < p) * 1.0), p, **keys)
        for p in (0.5, 0.8, 0.95)
        for n in (10, 25, 50, 200)
    ]
    found += [
        Regime(f"marks, {n} cases", lambda r, n=n: Sample(r.beta(4, 1.5, n)), 4 / 5.5, **keys) for n in (5, 20, 50, 200)
    ]
    found += [
        Regime(f"5 % catastrophes, {n} cases", lambda r, n=n: catastrophes(r, n), 0.95 * 0.98, **keys)
        for n in (10, 20, 50, 100)
    ]
    found += [
        Regime(f"right or wrong in {n} clusters of lognormal sizes", lambda r, n=n: clustered_scores(r, n), 0.8, **keys)
        for n in (10, 40)
    ]
    return found
