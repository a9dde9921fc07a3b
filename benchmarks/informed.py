"""A new arm on a suite that others have answered: what their answers are worth to a verdict against one of them.

500 cases have been answered by twelve arms; a thirteenth answers some of them, and is compared with one of the twelve. The
verdict is about cases like these, not about these 500. Two ways to use what is known: to ask those cases first that are
expected to tell the two apart, each with a known probability, and to weight them back; or to ask cases at random, and to
compare what the new arm scored on each with what the others did there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.regimes import Floats, Rng
from fairtrial.stats import ControlledMean
from fairtrial.stats.distributions import t_two_sided
from fairtrial.stats.paired import mean_difference

ALPHA, POWER, CASES, ARMS = 0.05, 0.8, 500, 12
_UNIFORM = 0.5  # of the probability that a case is asked with


class Suite(NamedTuple):
    """One suite: what the known arms and the new one score on every case. The first of the known ones is the rival."""

    known: Floats
    new: Floats


def _right(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-z))


def suite(rng: Rng, gap: float, *, spread: float, alien: bool, marks: bool) -> Suite:
    """Cases differ in difficulty; of an alien arm, the difficulties are its own. `gap` is in points of the mean."""
    difficulty = rng.normal(0, spread, CASES)
    abilities = rng.normal(0.3, 0.8, ARMS)
    abilities[0] = 0.5
    own = rng.normal(0, spread, CASES) if alien else difficulty
    shares = _right(np.vstack([abilities[:, None] - difficulty, np.full(CASES, _ability(gap, spread)) - own]))
    if marks:
        scores = np.round(np.clip(shares + rng.normal(0, 0.12, shares.shape), 0, 1), 1)
    else:
        scores = (rng.random(shares.shape) < shares).astype(float)
    return Suite(scores[:-1], scores[-1])


_GRID = np.linspace(-4, 6, 401)


def _ability(gap: float, spread: float) -> float:
    z = np.random.default_rng(0).normal(0, spread, 20_000)
    if spread not in _MEANS:
        _MEANS[spread] = np.asarray([_right(ability - z).mean() for ability in _GRID])
    means = _MEANS[spread]
    return float(np.interp(np.interp(0.5, _GRID, means) + gap, means, _GRID))


_MEANS: dict[float, Floats] = {}


def _plain(one: Suite, drawn: Floats, rng: Rng) -> float | None:
    return mean_difference(one.new[drawn], one.known[0][drawn]).p_value()


def _predicted(one: Suite, drawn: Floats, rng: Rng) -> float | None:
    plain = mean_difference(one.new[drawn], one.known[0][drawn])
    if plain.method != "t" or len(drawn) == CASES:
        return plain.p_value()
    expected = one.known.mean(axis=0) - one.known[0]
    return ControlledMean((one.new - one.known[0])[drawn], expected[drawn], expected).p_value()


def _informative(one: Suite, drawn: Floats, rng: Rng) -> float | None:
    """The best case for it: by t alone, without what allows for heavy cases that were not seen."""
    rival, share = one.known[0], (one.known.sum(axis=0) + 0.5) / (ARMS + 1)
    wanted = np.sqrt(np.clip((share - rival) ** 2 + share * (1 - share), 1e-3, None))
    chance = _UNIFORM + (1 - _UNIFORM) * wanted / wanted.mean()
    asked = np.argsort(rng.random(CASES) / chance)[: len(drawn)]  # sequential Poisson sampling
    d, w = (one.new - rival)[asked], 1 / chance[asked]
    mean = float((w * d).sum() / w.sum())
    error = float(np.sqrt(np.sum((w * (d - mean) / w.sum()) ** 2) * len(d) / (len(d) - 1)))
    return t_two_sided(mean / error, len(d) - 1) if error else 1.0


WAYS: dict[str, Callable[[Suite, Floats, Rng], float | None]] = {
    "the cases alone": _plain,
    "informative cases first": _informative,
    "with what the others scored": _predicted,
}
WORLDS = {
    "right or wrong, +12 points": ({"spread": 1.5, "alien": False, "marks": False}, 0.12),
    "right or wrong, cases differ much, +10 points": ({"spread": 3.0, "alien": False, "marks": False}, 0.10),
    "marks, +5 points": ({"spread": 1.5, "alien": False, "marks": True}, 0.05),
    "right or wrong, an arm unlike the others, +15 points": ({"spread": 1.5, "alien": True, "marks": False}, 0.15),
}


def found(way: str, world: str, n: int, gap: float, count: int) -> float:
    """How often a way finds a difference on this many cases."""
    keys, _ = WORLDS[world]
    rng, hits = np.random.default_rng([n, len(world), round(1000 * gap)]), 0
    for _ in range(count):
        one = suite(rng, gap, **keys)
        p = WAYS[way](one, rng.permutation(CASES)[:n], rng)
        hits += p is not None and p < ALPHA
    return hits / count


def informed(count: int) -> list[str]:
    """The cases that each way takes to find the gap in 80 of 100 runs, and what it finds on as many where there is none."""
    lines = [f"| | {' | '.join(WAYS)} |", "| --- |" + " ---: |" * len(WAYS)]
    for world, (_, gap) in WORLDS.items():
        cells = []
        for way in WAYS:
            n = _cases(way, world, gap, count)
            cells.append(f"{n} ({100 * found(way, world, n, 0.0, count):.0f} %)")
        lines.append(f"| {world} | {' | '.join(cells)} |")
    return lines


def _cases(way: str, world: str, gap: float, count: int) -> int:
    low, high = 10, CASES
    while high - low > max(2, low // 25):
        middle = (low + high) // 2
        low, high = (low, middle) if found(way, world, middle, gap, count) >= POWER else (middle, high)
    return high
