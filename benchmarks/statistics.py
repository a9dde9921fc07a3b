"""`python -m benchmarks.statistics [EXPERIMENTS]`: do tests and intervals hold what they promise? In every regime.

Every number is the share of simulated experiments in which something happened that should happen in 5 % of them at
most (a false claim), or in 95 % (an interval that holds the truth). Regimes in which a method fails are listed with
those in which it holds, and with what the product does there. The page of results is benchmarks/STATISTICS.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.regimes import Regime, Rng, Sample, binary, lopsided, marks, one_arm, pairs
from benchmarks.statistics_rows import ALPHA, LEAST_HELD, MOST_FALSE, Part, Row, share
from benchmarks.statistics_wider import wider
from fairtrial.stats import (
    Bets,
    ControlledMean,
    LabelledMean,
    Mean,
    bootstrap_ci,
    bradley_terry,
    corrected_mean,
    corrected_share,
    holm,
    holm_levels,
    interaction,
    lang_reiczigel,
    pass_at_k,
    pass_hat_k,
    run_means_test,
    sign_flip,
    wilcoxon,
)
from fairtrial.stats.distributions import t_two_sided

RESULTS = Path(__file__).parent / "STATISTICS.md"


def mean_of(regime: Regime, sample: Sample) -> Mean:
    return Mean(sample.values, sample.weights, sample.clusters, bounds=regime.bounds, span=regime.span)


def false_rate(regime: Regime, count: int, seed: int) -> tuple[float, float, float]:
    """How often the shipped interval misses the truth, how often plain t over cases would, and how often the rule
    takes t."""
    rng = np.random.default_rng(seed)
    ours, plain, by_t = 0, 0, 0
    for _ in range(count):
        sample = regime.draw(rng)
        found = mean_of(regime, sample)
        p = found.p_value(regime.truth)
        ours += p is not None and p < ALPHA
        by_t += found.method == "t"
        plain += _plain_t(sample, regime.truth) < ALPHA
    return ours / count, plain / count, by_t / count


def _plain_t(sample: Sample, truth: float) -> float:
    """What a spreadsheet does: Student's t over cases, whatever weights and clusters they have."""
    d = sample.values
    spread = float(np.std(d, ddof=1))
    if spread < 1e-12:
        return 1.0 if abs(float(d.mean()) - truth) < 1e-12 else 0.0
    return t_two_sided((float(d.mean()) - truth) / spread * len(d) ** 0.5, len(d) - 1)


def verdicts(count: int) -> Part:
    rows = []
    for number, regime in enumerate(pairs()):
        ours, plain, by_t = false_rate(regime, count, 1000 + number)
        beside = f"t over cases {100 * plain:.1f} %; the rule takes t in {100 * by_t:.0f} %"
        rows.append(Row(regime.what, ours, count, MOST_FALSE, beside=beside))
    return Part(
        "Two arms that do not differ: how often one is called better",
        "`compare`, `gate`, `rank`, `show`, report and page read the verdict off this interval.",
        rows,
    )


def single(count: int) -> Part:
    rows = []
    for number, regime in enumerate(one_arm()):
        ours, plain, by_t = false_rate(regime, count, 2000 + number)
        beside = f"t over cases {100 * (1 - plain):.1f} %; the rule takes t in {100 * by_t:.0f} %"
        rows.append(Row(regime.what, 1 - ours, count, LEAST_HELD, least=True, beside=beside))
    rng = np.random.default_rng(2999)
    for cases, tries in ((20, 2), (20, 5), (100, 3), (100, 10)):
        for name, kind in (("pass@2", pass_at_k), ("pass^2", pass_hat_k)):
            rows.append(_passes(rng, name, kind, cases, tries, count))
    return Part("One arm: how often its 95 % interval holds the truth", "Every mean that is shown has it.", rows)


def _passes(rng: Rng, name: str, kind: Callable[..., np.ndarray], cases: int, tries: int, count: int) -> Row:
    chances = np.random.default_rng(7).beta(6, 1, 1_000_000)
    truth = float(np.mean(1 - (1 - chances) ** 2 if kind is pass_at_k else chances**2))

    def holds(r: Rng) -> bool:
        right = r.binomial(tries, r.beta(6, 1, cases))
        p = Mean(kind(right, np.full(cases, tries), 2), bounds=(0.0, 1.0)).p_value(truth)
        return p is None or p >= ALPHA

    return Row(f"{name}, {cases} cases, {tries} repeats", share(rng, count, holds), count, LEAST_HELD, least=True)


def equivalences(count: int) -> Part:
    rng = np.random.default_rng(3)

    def claimed(draw: Callable[[Rng], np.ndarray], margin: float) -> Callable[[Rng], bool]:
        def experiment(r: Rng) -> bool:
            p = Mean(draw(r), bounds=(-1.0, 1.0), span=1.0).p_within(margin)
            return p is not None and p < ALPHA

        return experiment

    regimes = [
        ("5 cases, true loss 10, margin 5", lambda r: (r.random(5) < 0.1) * -1.0, 0.05),
        ("50 cases, true loss 3, margin 2", lambda r: (r.random(50) < 0.03) * -1.0, 0.02),
        ("200 cases, true loss 3, margin 3", lambda r: (r.random(200) < 0.03) * -1.0, 0.03),
        ("60 cases of marks, truth on the margin 5", lambda r: np.clip(r.normal(0.05, 0.2, 60), -1, 1), 0.05),
        ("100 cases, right or wrong, truth on the margin 10", lambda r: r.choice([-1.0, 0, 1], 100, p=[0.1, 0.7, 0.2]), 0.1),
    ]  # fmt: skip
    rows = [Row(what, share(rng, count, claimed(draw, margin)), count, MOST_FALSE) for what, draw, margin in regimes]

    def family(arms: int) -> Callable[[Rng], bool]:
        def experiment(r: Rng) -> bool:
            found = [Mean(np.clip(r.normal(0.1, 0.3, 80), -1, 1), bounds=(-1, 1), span=1) for _ in range(arms)]
            apart = holm_levels([one.p_value() or 1.0 for one in found])
            same = holm_levels([one.p_within(0.1) or 1.0 for one in found])
            return any(
                (one.p_value() or 1.0) >= a and (one.p_within(0.1) or 1.0) < min(a, b)
                for one, a, b in zip(found, apart, same, strict=True)
            )

        return experiment

    few = max(200, count // 2)
    rows += [
        Row(f"any of {n} pairs, all on the margin", share(rng, few, family(n)), few, MOST_FALSE) for n in (3, 5, 10)
    ]
    return Part(
        "How often arms are falsely called equivalent",
        "Equivalent is read off the same interval: it lies inside the margin, at the level of the pair.",
        rows,
    )


def families(count: int) -> Part:
    rng = np.random.default_rng(4)
    few = max(200, count // 4)

    def arms(r: Rng, k: int, n: int, draw: Callable[[Rng, int], tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        return np.asarray([draw(r, n)[0] for _ in range(k)])

    def any_pair(k: int, n: int, draw: Callable[[Rng, int], tuple[np.ndarray, np.ndarray]]) -> Callable[[Rng], bool]:
        def experiment(r: Rng) -> bool:
            scores = arms(r, k, n, draw)
            found = [
                Mean(scores[i] - scores[j], bounds=(-1, 1), span=1).p_value() for i, j in combinations(range(k), 2)
            ]
            return min(holm([1.0 if p is None else p for p in found])) < ALPHA

        return experiment

    rows = [
        Row(
            f"{k} equal arms, {what}, {n} cases: some rank is false",
            share(rng, few, any_pair(k, n, draw)),
            few,
            MOST_FALSE,
        )
        for k, n, what, draw in ((4, 50, "marks", marks), (10, 30, "marks", marks), (10, 100, "right or wrong", binary))
    ]

    def metrics(r: Rng) -> bool:
        found = [Mean(np.subtract(*marks(r, 40)), bounds=(-1, 1), span=1).p_value() or 1.0 for _ in range(25)]
        return min(holm(found)) < ALPHA

    rows.append(Row("25 metrics of noise: any called better or worse", share(rng, few, metrics), few, MOST_FALSE))

    def ratings(players: int, prompts: int) -> Callable[[Rng], bool]:
        games = list(combinations(range(players), 2))

        def experiment(r: Rng) -> bool:
            one, other = (np.asarray([game[side] for game in games] * prompts) for side in (0, 1))
            worth = r.choice([0.0, 0.5, 1.0], len(one), p=[0.4, 0.2, 0.4])
            found = bradley_terry(one, other, worth, prompts=np.arange(prompts).repeat(len(games)))
            return min(holm([1.0 if gap.p_value is None else gap.p_value for gap in found.gaps])) < ALPHA

        return experiment

    least = max(100, count // 20)
    rows += [
        Row(f"{k} equal players, {n} prompts: some rank by ratings is false", share(rng, least, ratings(k, n)), least, MOST_FALSE)
        for k, n in ((4, 10), (8, 10), (8, 20), (8, 50))
    ]  # fmt: skip
    return Part(
        "Many pairs, many metrics, many arms: how often anything false is said",
        "Pairs are a family, the other metrics are another (Holm); ranks are who is better than whom.",
        rows,
    )


def labels(count: int) -> Part:
    rng = np.random.default_rng(5)
    rows = []
    judges = {"hardly errs": (1.0, 0.9), "is mild": (0.95, 0.7), "is poor": (0.75, 0.7)}
    for n in (20, 30, 50, 100, 300):
        for many in (200, 5000):
            for name, (hit, held) in judges.items():
                rows.append(
                    _labelled(rng, f"right or wrong, {n} labels of {many}, judge {name}", n, many, hit, held, count)
                )
    for n in (20, 50, 100):
        rows.append(_graded(rng, n, count))
        rows.append(_labelled_pairs(rng, n, count))
    return Part(
        "Means and differences corrected by people's labels: how often the interval holds the truth",
        "Fewer than 20 labels correct nothing. Lang–Reiczigel is for labels that were not drawn from these answers.",
        rows,
    )


def _labelled(rng: Rng, what: str, n: int, many: int, hit: float, held: float, count: int) -> Row:
    hits = {"ours": 0, "other": 0}
    done = 0
    for _ in range(count // 2):
        y = rng.random(n + many) < 0.7
        f = np.where(y, rng.random(n + many) < hit, rng.random(n + many) >= held).astype(float)
        y = y.astype(float)
        found, other = (kernel(y[:n], f[:n], f[n:]) for kernel in (corrected_share, lang_reiczigel))
        if found.ci95 is None:
            continue
        done += 1
        hits["ours"] += found.ci95[0] <= 0.7 <= found.ci95[1]
        hits["other"] += other.ci95 is not None and other.ci95[0] <= 0.7 <= other.ci95[1]
    beside = f"Lang–Reiczigel {100 * hits['other'] / done:.1f} %"
    return Row(what, hits["ours"] / done, done, LEAST_HELD, least=True, beside=beside)


def _graded(rng: Rng, n: int, count: int) -> Row:
    hits = 0
    for _ in range(count // 2):
        y = np.clip(rng.beta(4, 2, n + 800), 0, 1)
        f = np.clip(y + 0.1 + rng.normal(0, 0.1, n + 800), 0, 1)
        found = corrected_mean(y[:n], f[:n], f[n:]).ci95
        hits += found is None or found[0] <= 4 / 6 <= found[1]
    return Row(
        f"marks, {n} labels of 800, judge 10 points too mild", 2 * hits / count, count // 2, LEAST_HELD, least=True
    )


def _labelled_pairs(rng: Rng, n: int, count: int) -> Row:
    """Two equal arms, a judge that favours one of them by 8.6 points."""
    hits = fooled = 0
    for _ in range(count // 2):
        y = (rng.random((2, n + 800)) < 0.6).astype(float)
        f = y.copy()
        f[0] = np.maximum(f[0], rng.random(n + 800) < 0.215)
        d, g = y[0] - y[1], f[0] - f[1]
        low, high = LabelledMean(d[:n], g[:n], g[n:]).interval()
        hits += low <= 0 <= high
        fooled += (Mean(g, bounds=(-1, 1), span=1).p_value() or 1.0) < ALPHA
    what = f"difference, {n} labels of 800, judge favours one arm by 8.6 points"
    beside = f"the judge alone calls it better in {200 * fooled / count:.0f} %"
    return Row(what, 2 * hits / count, count // 2, LEAST_HELD, least=True, beside=beside)


def stops(count: int) -> Part:
    """A run that ends as soon as it is sure, from 20 to 400 cases."""
    rng = np.random.default_rng(6)
    few = max(100, count // 10)
    rows = []
    for truth in (0.0, 0.05, 0.15, 0.3):
        hits = decided = 0
        middles, means = [], []
        for _ in range(few):
            bets = Bets()
            draws = rng.choice([-1.0, 0.0, 1.0], 400, p=[0.2 - truth / 2, 0.6, 0.2 + truth / 2])
            for number, value in enumerate(draws, 1):
                bets.add(float(value))
                if number >= 20 and min(bets.p_above(), bets.p_below()) < ALPHA:
                    decided += 1
                    break
            now = bets.now()
            assert now.interval is not None and now.middle is not None
            hits += now.interval[0] <= truth <= now.interval[1]
            middles.append(now.middle)
            means.append(now.mean)
        off = f"middle off by {np.mean(middles) - truth:+.3f}, mean by {np.mean(means) - truth:+.3f}; stopped in {100 * decided / few:.0f} %"
        rows.append(Row(f"true difference {100 * truth:g} points", hits / few, few, LEAST_HELD, least=True, beside=off))
    for what, draw in (("one large in 20", 0.05), ("one large in 50", 0.02)):
        wrong = 0
        for _ in range(few):
            bets = Bets()
            for value in lopsided(rng, 400, draw):
                bets.add(float(value))
            wrong += min(bets.p_above(), bets.p_below()) < ALPHA
        rows.append(Row(f"no difference, {what}: falsely decided", wrong / few, few, MOST_FALSE))
    return Part(
        "Runs that stop early: how often the interval holds the truth, whenever they stopped",
        "Every output of such a run shows this interval and its middle, and says that early stops overshoot.",
        rows,
    )


def controls(count: int) -> Part:
    rng = np.random.default_rng(8)
    rows = []
    for rho in (0.5, 0.8):
        wrong, saved = 0, []
        for _ in range(count):
            x = np.clip(rng.normal(0, 0.3, 400), -1, 1)
            d = np.clip(rho * x[:60] + rng.normal(0, 0.3 * (1 - rho**2) ** 0.5, 60), -1, 1)
            found = ControlledMean(d, x[:60], x)
            wrong += found.p_value() < ALPHA
            saved.append(found.saved)
        beside = f"saves {100 * np.mean(saved):.0f} % of the variance"
        rows.append(Row(f"correlation {rho:g}, 60 of 400 cases", wrong / count, count, MOST_FALSE, beside=beside))
    return Part(
        "An earlier run on more cases as control variate: how often one arm is falsely called better",
        "`compare --earlier RUN`. Never centred on the same cases: that was wrong in 8–24 %.",
        rows,
    )


def hints(count: int) -> Part:
    """Other tests, which are shown beside the verdict and never make it."""
    rng = np.random.default_rng(9)
    few = max(200, count // 4)

    def flips(draw: Callable[[Rng], np.ndarray]) -> Callable[[Rng], bool]:
        return lambda r: sign_flip(draw(r), resamples=999, seed=int(r.integers(1 << 30))) < ALPHA

    def ranks(draw: Callable[[Rng], np.ndarray]) -> Callable[[Rng], bool]:
        return lambda r: (wilcoxon(draw(r)) or 1.0) < ALPHA

    def boot(draw: Callable[[Rng], np.ndarray]) -> Callable[[Rng], bool]:
        def experiment(r: Rng) -> bool:
            found = bootstrap_ci(draw(r), resamples=1000, seed=int(r.integers(1 << 30))).ci
            return found is not None and not found[0] <= 0 <= found[1]

        return experiment

    def kinds(r: Rng) -> bool:
        found = interaction(np.subtract(*marks(r, 90)), r.integers(0, 3, 90))
        return found is not None and found.p_value < ALPHA

    draws: dict[str, Callable[[Rng], np.ndarray]] = {
        "marks, 40 cases": lambda r: np.subtract(*marks(r, 40)),
        "one large in 20, 50 cases": lambda r: lopsided(r, 50, 0.05),
    }
    tests = {"sign flips": flips, "Wilcoxon": ranks, "bootstrap over cases (BCa)": boot}
    rows = [
        Row(f"{name}, {what}", share(rng, few, test(draw)), few, MOST_FALSE if "marks" in what else None)
        for name, test in tests.items()
        for what, draw in draws.items()
    ]
    rows.append(Row("interaction of 3 kinds, marks, 90 cases", share(rng, few, kinds), few, MOST_FALSE))

    def runs(n: int, repeats: int) -> Callable[[Rng], bool]:
        def experiment(r: Rng) -> bool:
            chances = np.clip(r.beta(2, 2, (2, n)) * 0.5 + r.beta(2, 2, n) * 0.5, 0, 1)
            means = r.binomial(1, chances[:, None, :].repeat(repeats, axis=1)).mean(axis=2)
            found = run_means_test(means[0], means[1])
            return found is not None and found.is_significant

        return experiment

    rows += [
        Row(f"run means, {repeats} runs of {n} cases", share(rng, few, runs(n, repeats)), few, None)
        for n, repeats in ((30, 3), (30, 10), (200, 5))
    ]
    return Part(
        "Other tests: how often they see a difference that is not there",
        "They stand beside a verdict as a hint, and never make one. Without a bar: known to fail there.",
        rows,
    )


def parts(count: int) -> Iterable[Part]:
    """Every table."""
    for make in (verdicts, single, equivalences, families, labels, stops, controls, hints):
        yield make(count)
    yield from wider(count)


def page(found: list[Part], seconds: float, count: int) -> str:
    failed = sum(not row.held for part in found for row in part.rows)
    lines = sum(len(part.rows) for part in found)
    text = [
        "# Do the statistics hold what they promise?",
        "",
        f"Written by `python -m benchmarks.statistics {count}` in {seconds / 60:.0f} min on two cores: {lines} lines,",
        f"{failed} outside their bar. A false claim may happen in 5 % of experiments (bar 6 %), a 95 % interval must hold the",
        "truth in 93 % at least; ✓ means inside that, give or take twice what the simulation itself may be off by. Seeds are",
        "fixed, and none of these data were used to choose a method. Beside: what other ways would have said there.",
    ]
    for part in found:
        text += ["", f"## {part.title}", "", part.says, ""]
        text += ["| | found | bar | experiments | | beside |", "| --- | ---: | ---: | ---: | --- | --- |"]
        for row in part.rows:
            bar = "–" if row.bar is None else f"{'≥' if row.least else '≤'} {100 * row.bar:g} %"
            mark = "" if row.bar is None else "✓" if row.held else "✗"
            text.append(f"| {row.what} | {100 * row.found:.1f} % | {bar} | {row.count:,} | {mark} | {row.beside} |")
    return "\n".join([*text, ""])


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    started = time.monotonic()
    found = []
    for part in parts(count):
        found.append(part)
        print(f"{time.monotonic() - started:6.0f} s  {part.title}", file=sys.stderr)
    text = page(found, time.monotonic() - started, count)
    RESULTS.write_text(text, "utf-8")
    print(text)
    return int(not all(row.held for part in found for row in part.rows))


if __name__ == "__main__":
    sys.exit(main())
