"""`python -m benchmarks.statistics`: do the tests and intervals hold what they promise? The long simulation.

Every number is the share of simulated experiments in which something happened that should happen in 5 % of them (a
false alarm) or in 95 % (an interval that holds the truth). Scores are what people have: right or wrong, or a mark from
0 to 100 that cannot leave its scale. The page of results is benchmarks/STATISTICS.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairtrial.stats import (
    Bets,
    aggregate,
    bootstrap_ci,
    equivalence,
    holm,
    interaction,
    mcnemar,
    paired,
    run_means_test,
    sign_flip,
    wilcoxon,
)

RESULTS = Path(__file__).parent / "STATISTICS.md"
Rng = np.random.Generator


class Line(NamedTuple):
    what: str
    share: float
    low: float
    high: float
    count: int
    bar: bool = True  # whether it is one of ours to keep

    @property
    def held(self) -> bool:
        slack = 2 * (self.share * (1 - self.share) / self.count) ** 0.5  # what the simulation itself may be off by
        return self.low - slack <= self.share <= self.high + slack


def share(rng: Rng, count: int, experiment: Callable[[Rng], bool]) -> float:
    return float(np.mean([experiment(rng) for _ in range(count)]))


# -- two arms without a difference --------------------------------------------------------------------------------


def binary(rng: Rng, n: int, repeats: tuple[int, int] = (1, 1)) -> tuple[np.ndarray, np.ndarray]:
    """Right or wrong; cases differ in difficulty, and each arm finds other cases difficult."""
    chances = np.clip(rng.beta(2, 2, (2, n)) * 0.5 + rng.beta(2, 2, n) * 0.5, 0, 1)
    counts = [rng.integers(repeats[0], repeats[1] + 1, n) for _ in range(2)]
    a, b = (rng.binomial(count, chance) / count for count, chance in zip(counts, chances, strict=True))
    return a, b


def marks(rng: Rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Marks of 0–1 that cannot leave the scale, skewed towards the top."""
    base = rng.beta(4, 1.5, n)
    return tuple(np.clip(base + rng.normal(0, 0.2, n), 0, 1) for _ in range(2))  # type: ignore[return-value]


def clustered(rng: Rng, clusters: int, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cases in clusters of unequal size; an arm's luck is shared within a cluster."""
    sizes = rng.integers(1, most + 1, clusters)
    groups = np.arange(clusters).repeat(sizes)
    luck = rng.normal(0, 0.15, (2, clusters))[:, groups]
    base = rng.beta(4, 2, len(groups))
    a, b = (np.clip(base + part + rng.normal(0, 0.15, len(groups)), 0, 1) for part in luck)
    return a, b, groups


def weighted(rng: Rng, n: int) -> bool:
    a, b = marks(rng, n)
    return paired(a, b, weights=rng.integers(1, 4, n)).p_value < 0.05


def false_alarms(scale: int) -> list[Line]:
    rng = np.random.default_rng(1)
    many, few = 4000 * scale, 1000 * scale

    def line(what: str, count: int, experiment: Callable[[Rng], bool], low: float = 0.04, high: float = 0.06) -> Line:
        return Line(what, share(rng, count, experiment), low, high, count)

    def p(a: np.ndarray, b: np.ndarray, groups: np.ndarray | None = None) -> bool:
        found = paired(a, b, groups).p_value
        return found is not None and found < 0.05

    lines = [line(f"paired t, right or wrong, {n} cases", many, lambda r, n=n: p(*binary(r, n))) for n in (20, 50, 200)]
    lines += [line(f"paired t, marks, {n} cases", many, lambda r, n=n: p(*marks(r, n))) for n in (20, 50, 200)]
    lines += [line("paired t, 1 to 5 repeats a case, 60 cases", many, lambda r: p(*binary(r, 60, (1, 5))))]
    lines += [
        line(f"paired t, {c} clusters of 1 to {m} cases", many, lambda r, c=c, m=m: p(*clustered(r, c, m)))
        for c, m in ((20, 5), (40, 5), (100, 3))
    ]
    lines += [line("paired t, weights 1 to 3, 60 cases", many, lambda r: weighted(r, 60))]

    def flips(r: Rng) -> bool:
        a, b = marks(r, 30)
        return sign_flip(a - b, resamples=999, seed=int(r.integers(1 << 30))) < 0.05

    def ranks(r: Rng) -> bool:
        a, b = marks(r, 40)
        found = wilcoxon(a - b)
        return found is not None and found < 0.05

    lines += [line("sign-flip permutation, 30 cases", few, flips), line("Wilcoxon, 40 cases", many, ranks)]
    lines += [
        line("McNemar (exact, so below), 100 cases", many, lambda r: mcnemar(*binary(r, 100)).p_value < 0.05, 0.0, 0.05)
    ]

    def tost(r: Rng) -> bool:
        found = equivalence(r.normal(0.05, 0.2, 60), 0.05)
        return found is not None and found.equivalent

    lines += [line("equivalence, truth on the margin, 60 cases", many, tost, 0.0, 0.05)]

    def family(r: Rng) -> bool:
        values = [marks(r, 50)[0] for _ in range(4)]
        pairs = [paired(values[i], values[j]).p_value for i in range(4) for j in range(i + 1, 4)]
        return min(holm(pairs)) < 0.05

    lines += [line("any of 6 pairs after Holm, 50 cases", few, family, 0.0, 0.06)]

    def kinds(r: Rng) -> bool:
        a, b = marks(r, 90)
        found = interaction(a - b, r.integers(0, 3, 90))
        return found is not None and found.p_value < 0.05

    def kinds_clustered(r: Rng) -> bool:
        a, b, groups = clustered(r, 40, 4)
        found = interaction(a - b, r.integers(0, 3, len(a)), groups)
        return found is not None and found.p_value < 0.05

    lines += [line("interaction of 3 kinds, 90 cases", many, kinds)]
    lines += [line("interaction of 3 kinds, 40 clusters", many, kinds_clustered)]
    return lines


def others(scale: int) -> list[Line]:
    """The classical test on run means, asked about cases like these: why it is not our verdict."""
    rng = np.random.default_rng(2)
    count = 2000 * scale

    def runs(n: int, repeats: int) -> Callable[[Rng], bool]:
        def experiment(r: Rng) -> bool:
            chances = np.clip(r.beta(2, 2, (2, n)) * 0.5 + r.beta(2, 2, n) * 0.5, 0, 1)
            means = r.binomial(1, chances[:, None, :].repeat(repeats, axis=1)).mean(axis=2)
            found = run_means_test(means[0], means[1])
            return found is not None and found.is_significant

        return experiment

    return [
        Line(f"run means, {repeats} runs of {n} cases", share(rng, count, runs(n, repeats)), 0.0, 1.0, count, bar=False)
        for n, repeats in ((30, 3), (30, 10), (200, 5))
    ]


def coverage(scale: int) -> list[Line]:
    rng = np.random.default_rng(3)
    many, few = 4000 * scale, 1000 * scale
    lines = []
    truth = float(np.mean(rng.beta(4, 1.5, 2_000_000)))
    for n in (20, 50, 200):

        def one(r: Rng, n: int = n) -> bool:
            low, high = aggregate(r.beta(4, 1.5, n)).ci95
            return bool(low <= truth <= high)

        def right(r: Rng, n: int = n) -> bool:
            low, high = aggregate((r.random(n) < 0.8).astype(float)).ci95
            return bool(low <= 0.8 <= high)

        lines.append(Line(f"mean of marks, {n} cases", share(rng, many, one), 0.93, 0.97, many))
        lines.append(Line(f"share of right answers (0.8), {n} cases", share(rng, many, right), 0.93, 0.97, many))

    def clusters(r: Rng) -> bool:
        a, b, groups = clustered(r, 40, 5)
        low, high = paired(a, b, groups).ci95
        return bool(low <= 0 <= high)

    def boot(r: Rng) -> bool:
        a, b = marks(r, 50)
        low, high = bootstrap_ci(a - b, resamples=1000, seed=int(r.integers(1 << 30))).ci
        return bool(low <= 0 <= high)

    def boot_repeats(r: Rng) -> bool:
        """Much noise between repeats."""
        values = r.normal(0, 0.1, 50)[:, None] + r.normal(0, 0.3, (50, 3))
        low, high = bootstrap_ci(values, resamples=1000, seed=int(r.integers(1 << 30))).ci
        return bool(low <= 0 <= high)

    def boot_clusters(r: Rng) -> bool:
        a, b, groups = clustered(r, 40, 5)
        low, high = bootstrap_ci(a - b, clusters=groups, resamples=1000, seed=int(r.integers(1 << 30))).ci
        return bool(low <= 0 <= high)

    lines.append(Line("difference, 40 clusters", share(rng, many, clusters), 0.93, 0.97, many))
    lines.append(Line("bootstrap of a difference, 50 cases", share(rng, few, boot), 0.93, 0.97, few))
    lines.append(Line("bootstrap of a difference, 40 clusters", share(rng, few, boot_clusters), 0.93, 0.97, few))
    lines.append(Line("bootstrap of a mean, 3 noisy repeats, 50 cases", share(rng, few, boot_repeats), 0.93, 0.97, few))
    return lines


def lopsided(share_: float) -> Callable[[Rng], float]:
    """One difference in so many, large; all others tiny and the other way: a mean of 0."""
    return lambda r: 1.0 if r.random() < share_ / (1 + share_) else -share_


DIFFERENCES: dict[str, Callable[[Rng], float]] = {
    "right or wrong": lambda r: float(r.integers(0, 2)) - float(r.integers(0, 2)),
    "marks": lambda r: float(np.subtract(*marks(r, 1))[0]),
    "one large in 20": lopsided(0.05),
    "one large in 50": lopsided(0.02),
}


def sequences(scale: int) -> list[Line]:
    """Looked at after every case, from the 20th to the 600th."""
    rng = np.random.default_rng(4)
    count = 300 * scale
    lines = []
    for what, draw in DIFFERENCES.items():

        def fooled(r: Rng, draw: Callable[[Rng], float] = draw) -> bool:
            bets = Bets()
            for _ in range(600):
                bets.add(draw(r))
            return min(bets.p_above(), bets.p_below()) < 0.05

        lines.append(Line(f"bets, {what}", share(rng, count, fooled), 0.0, 0.05, count))

    def same(r: Rng) -> bool:
        bets = Bets(points=(0.02, -0.02))
        for _ in range(600):
            bets.add(float(r.random() < 0.03))
        return bets.p_above(-0.02) < 0.05 and bets.p_below(0.02) < 0.05

    lines.append(Line("equivalence by bets, truth 3 points, margin 2", share(rng, count, same), 0.0, 0.05, count))
    return lines


def asymptotic(scale: int) -> list[Line]:
    """The asymptotic sequence of the literature, from the 50th case on: why the run does not stop by it."""
    rng = np.random.default_rng(5)
    count = 300 * scale
    lines = []
    for what, draw in DIFFERENCES.items():

        def fooled(r: Rng, draw: Callable[[Rng], float] = draw) -> bool:
            d = np.asarray([draw(r) for _ in range(600)])
            n = np.arange(1, 601)
            means = np.cumsum(d) / n
            spread = np.sqrt(np.maximum(0, np.cumsum(d**2) - n * means**2) / np.maximum(1, n - 1))
            rho2 = (-2 * np.log(0.05) + np.log(-2 * np.log(0.05) + 1)) / 100
            half = spread * np.sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * np.log(np.sqrt(n * rho2 + 1) / 0.05))
            return bool(np.any(np.abs(means[49:]) > half[49:]))

        lines.append(Line(f"asymptotic sequence, {what}", share(rng, count, fooled), 0.0, 1.0, count, bar=False))
    return lines


def page(parts: dict[str, list[Line]], seconds: float) -> str:
    text = [
        "# Do the statistics hold what they promise?",
        "",
        f"Written by `python -m benchmarks.statistics` in {seconds / 60:.0f} min. Every line is a share of simulated",
        "experiments; ✓ means inside its bar, give or take twice what the simulation itself may be off by.",
    ]
    for title, lines in parts.items():
        text += ["", f"## {title}", "", "| | found | bar | experiments | |", "| --- | ---: | ---: | ---: | --- |"]
        for line in lines:
            bar = f"{100 * line.low:g}–{100 * line.high:g} %" if line.bar else "–"
            mark = ("✓" if line.held else "✗") if line.bar else ""
            text.append(f"| {line.what} | {100 * line.share:.1f} % | {bar} | {line.count:,} | {mark} |")
    return "\n".join([*text, ""])


def main() -> int:
    scale = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    started = time.monotonic()
    parts = {
        "False alarms of the tests we ship, at 5 %": false_alarms(scale),
        "Coverage of 95 % intervals": coverage(scale),
        "Looking after every case": sequences(scale),
        "For comparison: the asymptotic sequence": asymptotic(scale),
        "For comparison: run means, asked about cases like these": others(scale),
    }
    text = page(parts, time.monotonic() - started)
    RESULTS.write_text(text, "utf-8")
    print(text)
    return int(not all(line.held for lines in parts.values() for line in lines if line.bar))


if __name__ == "__main__":
    sys.exit(main())
