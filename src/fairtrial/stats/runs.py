"""Several runs of one plan: how much their means vary, and the classical test on run means."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from fairtrial.stats.distributions import t_quantile, t_two_sided
from fairtrial.stats.units import Interval, Measured

_WORDS = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"))


class MultiRunStats(msgspec.Struct, frozen=True, kw_only=True):
    """Summary statistics of run means; a single run says nothing about the spread."""

    mean: Measured
    std_dev: Measured | None
    min: Measured
    max: Measured
    ci95: Interval | None
    count: int


class RunMeansTest(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms compared by their run means with the pooled-variance Student t-test."""

    mean_a: Measured
    mean_b: Measured
    score_diff: Measured
    pooled_std_err: Measured
    t_statistic: float
    p_value: float
    is_significant: bool
    effect_size: float
    effect: str
    note: str = ""


def multi_run(scores: ArrayLike) -> MultiRunStats:
    """Return mean, sample standard deviation, extremes and Student t interval of run means."""
    values = np.asarray(scores, dtype=np.float64)
    n = len(values)
    if n == 0:
        raise ValueError("no runs")
    mean = float(values.mean())
    spread = float(np.std(values, ddof=1)) if n > 1 else None
    interval = None
    if spread is not None:
        half = t_quantile(0.975, n - 1) * spread / math.sqrt(n)
        interval = (mean - half, mean + half)
    return MultiRunStats(
        mean=mean, std_dev=spread, min=float(values.min()), max=float(values.max()), ci95=interval, count=n
    )


def run_means_test(a: ArrayLike, b: ArrayLike) -> RunMeansTest | None:
    """Run the t-test with pooled variance and nA + nB − 2 degrees of freedom; None with fewer than two runs of either.

    It treats runs as the sample and cases as fixed: for "which is better on questions like these?" see `paired`.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    na, nb = len(first), len(second)
    if na < 2 or nb < 2:
        return None
    freedom = na + nb - 2
    difference = float(first.mean() - second.mean())
    squares = float(np.sum((first - first.mean()) ** 2) + np.sum((second - second.mean()) ** 2))
    pooled = math.sqrt(squares / freedom)
    error = pooled * math.sqrt(1 / na + 1 / nb)
    note = ""
    if error > 1e-12 * max(1.0, abs(float(first.mean())), abs(float(second.mean()))):  # otherwise it is rounding error
        t = difference / error
        p, effect = t_two_sided(t, freedom), difference / pooled
    else:
        note = "the runs of each arm have the same mean: run-to-run variation cannot be estimated"
        error, equal = 0.0, abs(difference) < 1e-12
        t, p, effect = (0.0, 1.0, 0.0) if equal else (math.copysign(math.inf, difference), 0.0, math.inf)
        effect = math.copysign(effect, difference)
    return RunMeansTest(
        mean_a=float(first.mean()),
        mean_b=float(second.mean()),
        score_diff=difference,
        pooled_std_err=error,
        t_statistic=t,
        p_value=p,
        is_significant=p < 0.05,
        effect_size=effect,
        effect=effect_words(effect),
        note=note,
    )


class PairedRunsTest(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms compared run by run with the paired Student t-test."""

    difference: Measured
    t_statistic: float
    freedom: int
    p_value: float
    note: str = ""


def paired_runs_test(a: ArrayLike, b: ArrayLike) -> PairedRunsTest | None:
    """Run the t-test on the differences of run means, the first run of a with the first of b; None with fewer than two.

    Its sample are runs of the same cases: it says nothing about other cases, for which see `paired`.
    """
    differences = np.subtract(a, b, dtype=np.float64)
    n = len(differences)
    if n < 2:
        return None
    mean, spread = float(differences.mean()), float(np.std(differences, ddof=1))
    note = ""
    if spread > 1e-12:
        t = mean / (spread / math.sqrt(n))
        p = t_two_sided(t, n - 1)
    else:
        note = "the difference is the same in all runs: run-to-run variation cannot be estimated"
        t, p = (0.0, 1.0) if abs(mean) < 1e-12 else (math.copysign(math.inf, mean), 0.0)
    return PairedRunsTest(difference=mean, t_statistic=t, freedom=n - 1, p_value=p, note=note)


class AnswersTest(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms on one case, where their answers are the sample: pooled two-sample t, and t paired by repeat."""

    mean_a: Measured
    mean_b: Measured
    std_dev_a: Measured
    std_dev_b: Measured
    count_a: int
    count_b: int
    difference: Measured
    ci95: Interval | None  # None where the answers never vary
    p_value: float
    paired_count: int  # repeats that both have
    paired_p_value: float | None  # None with fewer than two of them
    note: str = ""


def answers_test(a: Mapping[Any, float], b: Mapping[Any, float], alpha: float = 0.05) -> AnswersTest | None:
    """Compare the answers of two arms to one case, each by its repeat; None with fewer than two of either.

    It says nothing about other cases, for which see `paired`.
    """
    test = run_means_test(list(a.values()), list(b.values()))
    if test is None:
        return None
    both = [repeat for repeat in a if repeat in b]
    by_repeat = paired_runs_test([a[repeat] for repeat in both], [b[repeat] for repeat in both])
    half = t_quantile(1 - alpha / 2, len(a) + len(b) - 2) * test.pooled_std_err
    return AnswersTest(
        mean_a=test.mean_a,
        mean_b=test.mean_b,
        std_dev_a=float(np.std(list(a.values()), ddof=1)),
        std_dev_b=float(np.std(list(b.values()), ddof=1)),
        count_a=len(a),
        count_b=len(b),
        difference=test.score_diff,
        ci95=(test.score_diff - half, test.score_diff + half) if test.pooled_std_err else None,
        p_value=test.p_value,
        paired_count=len(both),
        paired_p_value=None if by_repeat is None else by_repeat.p_value,
        note="the answers of each arm never vary: a difference cannot be distinguished from luck"
        if not test.pooled_std_err
        else "",
    )


def effect_words(d: float) -> str:
    """Return Cohen's word for the size of a standardised difference."""
    return next((word for bound, word in _WORDS if abs(d) < bound), "large")
