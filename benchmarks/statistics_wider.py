"""More regimes for `benchmarks.statistics`: budgets, looks, races, looking again, votes, drift, weights, families, power."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from benchmarks.plans import looked, played
from benchmarks.regimes import Floats, Rng, binary, lopsided, marks
from benchmarks.statistics_rows import ALPHA, MOST_FALSE, Part, Row, share
from fairtrial.analyse.battles import Battles
from fairtrial.analyse.rank import better_by_rating, rated
from fairtrial.core.settings import StopSpec
from fairtrial.judging.second import is_drawn
from fairtrial.stats import LabelledMean, Mean, holm
from fairtrial.stats.distributions import t_two_sided
from fairtrial.stats.drift import RUNS, control_chart
from fairtrial.stats.looks import level_of_another_look
from fairtrial.stats.paired import mean_difference

LOOKS = StopSpec(when="decided", looks=5)
RACE = StopSpec(when="decided", looks=5, race=True)
_TABLE = 0.015  # by how much power may be below what was found before the rule was made


def _p(differences: Floats) -> float:
    p = Mean(differences, bounds=(-1.0, 1.0), span=1.0).p_value()
    return 1.0 if p is None else p


def budgets(count: int) -> Part:
    """200 cases, easy ones first; one arm is better on the easy half, the other on the rest."""

    def stopped(r: Rng, n: int, *, at_random: bool) -> bool:
        d = np.where(np.arange(200) < 100, 0.3, -0.3) + r.normal(0, 0.2, 200)
        order = r.permutation(200) if at_random else np.arange(200)
        return _p(np.clip(d[order[:n]], -1, 1)) < ALPHA

    rows = []
    for n in (30, 60, 120):
        rng = np.random.default_rng(100 + n)
        few = max(200, count // 2)
        in_order = share(rng, few, lambda r, n=n: stopped(r, n, at_random=False))
        found = share(rng, few, lambda r, n=n: stopped(r, n, at_random=True))
        beside = f"in the order of the file {100 * in_order:.0f} %"
        rows.append(Row(f"{n} of 200 cases, easy ones first", found, few, MOST_FALSE, beside=beside))
    return Part(
        "A run that its budget stopped: how often an arm that is not better is called better",
        "Cases are asked in a random order, so that those which were asked are a sample.",
        rows,
    )


def _arms(differences: Floats) -> tuple[Floats, Floats]:
    """Return scores on the scale, which differ so."""
    return np.maximum(differences, 0.0), np.maximum(-differences, 0.0)


_NULL: dict[str, Callable[[Rng, int], tuple[Floats, Floats]]] = {
    "right or wrong": binary,
    "marks": marks,
    "marks that hardly differ": lambda r, n: marks(r, n, 0.05),
    "one large in 20": lambda r, n: _arms(lopsided(r, n, 0.05)),
    "one large in 50": lambda r, n: _arms(lopsided(r, n, 0.02)),
}


def looks(count: int) -> Part:
    rows = []
    few = max(200, count // 2)
    for stop, shape in ((LOOKS, "late"), (RACE, "even")):
        for n in (50, 100, 300):
            for number, (what, draw) in enumerate(_NULL.items()):
                rng = np.random.default_rng(3000 + 10 * n + number + len(shape))

                def sure(
                    r: Rng, stop: StopSpec = stop, n: int = n, draw: Callable[..., tuple[Floats, Floats]] = draw
                ) -> bool:
                    scores = np.asarray(draw(r, n))
                    p = looked(scores, stop, played(scores, stop)).p_value()
                    return p is not None and p < ALPHA

                rows.append(Row(f"five {shape} looks, {what}, {n} cases", share(rng, few, sure), few, MOST_FALSE))
    return Part(
        "Planned looks: how often one of two equal arms is called better at any look",
        "`run --looks` and races, by the code that stops real runs.",
        rows,
    )


def races(count: int) -> Part:
    worlds: dict[str, tuple[list[float], int]] = {
        "six equal arms": ([0.65] * 6, 200),
        "two tied at the top, four equal below": ([0.75, 0.75, *[0.6] * 4], 300),
        "three pairs of equal arms": ([0.8, 0.8, 0.7, 0.7, 0.6, 0.6], 300),
    }
    few = max(200, count // 8)
    rows = []
    for number, (what, (means, n)) in enumerate(worlds.items()):
        rng = np.random.default_rng(4000 + number)

        def wrong(r: Rng, means: list[float] = means, n: int = n) -> bool:
            easy = r.normal(0, 0.15, n)
            chance = np.clip(np.asarray(means)[:, None] + easy, 0.02, 0.98)
            done = played((r.random((6, n)) < chance).astype(float), RACE)
            stayed = max((means[arm] for arm in range(6) if arm not in done.left), default=0.0)
            return any(means[arm] >= stayed for arm in done.left)

        rows.append(Row(f"{what}, {n} cases", share(rng, few, wrong), few, MOST_FALSE))
    return Part(
        "Races: how often an arm leaves that no arm which stays is better than",
        "At each look an arm leaves that is worse than another at the level of the look over the number of pairs.",
        rows,
    )


def again(count: int) -> Part:
    def any_look(r: Rng, draw: Callable[[Rng, int], tuple[Floats, Floats]], *, spent: bool) -> bool:
        a, b = draw(r, 640)
        for number, n in enumerate((40, 80, 160, 320, 640), 1):
            p = mean_difference(a[:n], b[:n]).p_value()
            if p is not None and p < (level_of_another_look(number) if spent else ALPHA):
                return True
        return False

    few = max(200, count // 2)
    rows = []
    for number, (what, draw) in enumerate(_NULL.items()):
        rng = np.random.default_rng(5000 + number)
        without = share(rng, few, lambda r, d=draw: any_look(r, d, spent=False))
        found = share(rng, few, lambda r, d=draw: any_look(r, d, spent=True))
        beside = f"if nobody counts looks {100 * without:.1f} %"
        rows.append(Row(f"{what}, from 40 to 640 cases", found, few, MOST_FALSE, beside=beside))
    return Part(
        "Looking again after adding cases: how often one of two equal arms is ever called better",
        "`run --more`, and any run that extends one that was looked at: 4 % at the first look, then half of the rest.",
        rows,
    )


def families(count: int) -> Part:
    """45 pairs of ten equal arms: how often anything is said."""

    def crashing(r: Rng, n: int) -> Floats:
        scores = np.full((10, n), 0.95) + r.normal(0, 0.01, (10, n))
        scores[5:] = np.where(r.random((5, n)) < 0.02, 0.0, 0.95 / 0.98 + r.normal(0, 0.01, (5, n)))
        return np.clip(scores, 0, 1)

    def two_rates(r: Rng, n: int) -> Floats:
        often, rarely = r.random((5, n)) < 0.1, r.random((5, n)) < 0.05
        return np.vstack([np.where(often, 0.4, 0.9), np.where(rarely, 0.0, 0.85 / 0.95)])

    worlds: dict[str, Callable[[Rng, int], Floats]] = {
        "steady beside crashing arms": crashing,
        "two rates of crashes": two_rates,
        "marks": lambda r, n: np.clip(r.beta(4, 1.5, n) + r.normal(0, 0.2, (10, n)), 0, 1),
        "right or wrong": lambda r, n: (r.random((10, n)) < r.beta(2, 1, n)).astype(float),
        "5-step judge": lambda r, n: np.round(4 * np.clip(r.beta(4, 2, n) + r.normal(0, 0.15, (10, n)), 0, 1)) / 4,
    }
    few = max(100, count // 8)
    rows = []
    for number, (what, draw) in enumerate(worlds.items()):
        for n in (30, 100, 400):
            rng = np.random.default_rng(6000 + 10 * number + n)

            def said(r: Rng, n: int = n, draw: Callable[[Rng, int], Floats] = draw) -> bool:
                scores = draw(r, n)
                found = [mean_difference(scores[i], scores[j]).p_value() for i, j in combinations(range(10), 2)]
                return min(holm([1.0 if p is None else p for p in found])) < ALPHA

            rows.append(Row(f"{what}, {n} cases", share(rng, few, said), few, MOST_FALSE))
    return Part(
        "Families of 45 pairs: how often anything false is said about ten equal arms",
        "Below 5 % the level of a single pair does not hold everywhere; what is promised is the family.",
        rows,
    )


def votes(count: int) -> Part:
    few = max(200, count // 4)

    def ranked(players: int, number: int) -> Callable[[Rng], bool]:
        def experiment(r: Rng) -> bool:
            one = r.integers(0, players, number)
            other = (one + r.integers(1, players, number)) % players
            worth = (r.random(number) < 0.5).astype(float)
            return bool(better_by_rating(rated(Battles(one, other, worth, np.arange(number)), players, fit=True)).any())

        return experiment

    rng = np.random.default_rng(7000)
    rows = [
        Row(f"{k} equal players, {n} votes, one for each prompt", share(rng, few, ranked(k, n)), few, MOST_FALSE)
        for k, n in ((4, 8), (4, 40), (10, 30), (10, 50))
    ]
    return Part("Ranks by votes: how often equal players are ranked", "`vote`, `rank --by votes`, Arena.", rows)


def drifts(count: int) -> Part:
    worlds: dict[str, Callable[[Rng, int], Floats]] = {
        "right or wrong": lambda r, n: r.choice([0.05, 0.5, 0.95], n, p=[0.1, 0.15, 0.75]),
        "beta(2, 1)": lambda r, n: r.beta(2, 1, n),
        "saturated": lambda r, n: np.where(r.random(n) < 0.95, 0.998, 0.9),
    }
    few = max(100, count // 10)
    rows = []
    for number, (what, draw) in enumerate(worlds.items()):
        for n in (20, 100):
            for repeats in (0, 1, 3):
                rng = np.random.default_rng(8000 + 100 * number + n + repeats)

                def alarm(r: Rng, n: int = n, repeats: int = repeats, draw: Callable[..., Floats] = draw) -> bool:
                    times = max(1, repeats)
                    scores = r.binomial(times, draw(r, n), (RUNS, n)) / times
                    noise = np.mean(scores * (1 - scores)) * times / max(1, times - 1) / times / n
                    within = None if repeats == 1 else [float(noise) if repeats else 0.0] * RUNS
                    return any(step.alarm for step in control_chart(scores, np.ones(n), within))

                how = "the same in a run" if repeats == 0 else f"{repeats} answer{'s' if repeats > 1 else ''}"
                rows.append(Row(f"{what}, {n} cases, {how}", share(rng, few, alarm), few, MOST_FALSE))
    return Part("Drift: how often a chart of 100 runs has an alarm although nothing changes", "`drift`.", rows)


def weights(count: int) -> Part:
    """Heavy cases are those on which one arm is better; all in all, the arms are equal."""
    rows = []
    for spread in (0.5, 1.0, 1.5):
        for n in (30, 100):
            rng = np.random.default_rng(round(9000 + 10 * spread + n))

            def missed(r: Rng, spread: float = spread, n: int = n) -> bool:
                z = r.standard_normal(n)
                w = np.exp(spread * z)
                # E[w·d] = 0: heavier cases favour one arm, as much as lighter ones the other.
                d = np.clip(0.25 * (z - spread) + r.normal(0, 0.15, n), -1, 1)
                truth = _weighted_truth(spread)
                p = Mean(d, w, bounds=(-1.0, 1.0), span=1.0).p_value(truth)
                return p is not None and p < ALPHA

            rows.append(Row(f"lognormal weights ({spread:g}), {n} cases", share(rng, count, missed), count, MOST_FALSE))
    return Part(
        "Weights that go with the difference: how often the interval misses the truth",
        "Where they go together, a heavy case that was not seen is allowed for, and the output says so.",
        rows,
    )


_SHARE = 0.3  # of the cases, which the second judge judges


def _judged(r: Rng, n: int, gap: float, agreement: float) -> tuple[Floats, Floats]:
    """Return how far a is ahead on every case, by a dear judge, and by a cheap one that likes b's style by 5 points.

    Marks of 0 to 10; `agreement` is the correlation of both judges' differences.
    """
    dear = r.normal(gap, 0.25, n)
    cheap = agreement * (dear - gap) + np.sqrt(1 - agreement**2) * r.normal(0, 0.25, n) + gap - 0.05
    return np.round(np.clip(dear, -1, 1), 1), np.round(np.clip(cheap, -1, 1), 1)


def _verdicts(r: Rng, n: int, gap: float, agreement: float, number: int) -> list[bool]:
    """Return who calls the arms different: both judges together, either one on all cases, the dear one on its part."""
    dear, cheap = _judged(r, n, gap, agreement)
    drawn = np.asarray([is_drawn(f"{number}/{case}", _SHARE) for case in range(n)])
    together = LabelledMean(dear[drawn], cheap[drawn], cheap[~drawn], bounds=(-1.0, 1.0))
    return [together.p_value() < ALPHA, *(_p(one) < ALPHA for one in (cheap, dear, dear[drawn]))]


def second_judges(count: int) -> Part:
    """Two judges of 200 cases: a cheap one that has a favourite, and a dear one for 30 % of them."""
    rows = []
    few = max(400, count // 2)
    for gap, agreement in ((0.0, 0.9), (0.0, 0.7), (0.0, 0.4), (0.08, 0.9), (0.08, 0.7), (0.08, 0.4)):
        rng = np.random.default_rng(round(1000 * gap + 10 * agreement))
        found = np.mean([_verdicts(rng, 200, gap, agreement, number) for number in range(few)], axis=0)
        together, cheap, dear, part = (float(one) for one in found)
        what = f"{'8 points better' if gap else 'no difference'}, the judges correlate by {agreement:g}"
        beside = (
            f"cheap judge alone {100 * cheap:.0f} %, dear one on its part {100 * part:.0f} %, on all {100 * dear:.0f} %"
        )
        most = (
            part - 0.03 if gap else MOST_FALSE
        )  # at least what the same verdicts of the dear judge find without the others
        rows.append(Row(what, together, few, most, least=gap > 0, beside=beside))
    return Part(
        "A cheap judge of all cases and a dear one of 30 %: how often two arms are called different",
        "200 cases; the cheap judge likes one arm's style by 5 points, which the dear one corrects.",
        rows,
    )


_TRUTHS: dict[float, float] = {}


def _weighted_truth(spread: float) -> float:
    if spread not in _TRUTHS:
        r = np.random.default_rng(1)
        z = r.standard_normal(4_000_000) + spread  # weighted by exp(spread·z), z is normal around spread
        _TRUTHS[spread] = float(np.clip(0.25 * (z - spread) + r.normal(0, 0.15, len(z)), -1, 1).mean())
    return _TRUTHS[spread]


def powers(count: int) -> Part:
    """Normal differences on a scale of 200 points, against what was found before the rule was made."""
    rows = []
    few = max(400, count // 2)
    for sd, gap, n, table in (
        (20, 15, 20, 0.35), (20, 15, 30, 0.91), (10, 10, 30, 0.30), (10, 5, 80, 0.76), (5, 5, 80, 0.97), (20, 10, 50, 0.94),
    ):  # fmt: skip
        rng = np.random.default_rng(sd * 1000 + gap * 100 + n)
        d = np.clip(rng.normal(gap / 100, sd / 100, (few, n)), -1, 1)
        found = float(np.mean([_p(row) < ALPHA for row in d]))
        t = np.mean([t_two_sided(float(row.mean() / row.std(ddof=1)) * n**0.5, n - 1) < ALPHA for row in d])
        what = f"deviation {sd}, {gap} points better, {n} cases"
        rows.append(Row(what, found, few, table - _TABLE, least=True, beside=f"t over cases {100 * t:.0f} %"))
    return Part(
        "Power: how often a difference that is there is found",
        "What it costs to hold in every table above; t over cases does not hold there. At least what was found beforehand.",
        rows,
    )


def wider(count: int) -> Iterator[Part]:
    """Every table."""
    for make in (budgets, looks, races, again, families, votes, drifts, weights, second_judges, powers):
        yield make(count)
