"""Estimate the mean that people would have given to all answers: a few human labels correct a cheap judge.

The intervals allow for errors that the labels did not show: a judge that erred on none of 30 labelled answers errs on
some of 5,000.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import beta_quantile, normal_quantile
from fairtrial.stats.mean import ALPHA, StudentMean
from fairtrial.stats.units import Interval, Measured

FEWEST_LABELS = 20
_CHANCE = 0.01

Floats = NDArray[np.float64]


class Corrected(msgspec.Struct, frozen=True, kw_only=True):
    """A corrected mean. `mean` is None where the correction is refused, and `refused` says why."""

    mean: Measured | None
    ci95: Interval | None
    uncorrected: Measured
    labelled: int
    unlabelled: int
    method: str
    tuning: float | None = None
    worth: float | None = None  # how many labelled cases alone would make the mean as sure
    refused: str = ""


class LabelledMean(StudentMean):
    """The mean over labelled and judged cases, with intervals at any level.

    λ·mean(judge, unlabelled) + mean(label − λ·judge, labelled), with λ between 0 and 1; its variance allows for one
    full disagreement that the labels did not happen to show.
    """

    method = "corrected by labels"

    def __init__(
        self,
        labels: ArrayLike,
        judged: ArrayLike,
        judged_unlabelled: ArrayLike,
        *,
        span: float = 1.0,
        bounds: tuple[float, float] = (-math.inf, math.inf),
    ) -> None:
        self.bounds = bounds
        y, f, rest = (np.asarray(a, dtype=np.float64) for a in (labels, judged, judged_unlabelled))
        n, big = len(y), len(rest)
        spread = float(np.var(f, ddof=1))
        slope = float(np.cov(y, f, ddof=1)[0, 1]) / spread if spread > 0 else 0.0
        self._slope = min(1.0, max(0.0, slope))
        self.tuning = self._slope / (1 + n / big)
        errors = y - self.tuning * f
        self.mean = self.tuning * float(rest.mean()) + float(errors.mean())
        self._squares, self._unseen = float(np.sum((errors - errors.mean()) ** 2)), span**2
        self._spread_of_rest = float(np.var(rest, ddof=1))
        self.labelled, self.unlabelled = n, big
        self.std_err = self._std_err(n, big, self.tuning)
        self.freedom = n - 2.0
        alone = (float(np.sum((y - y.mean()) ** 2)) + self._unseen) / ((n - 1) * n)
        self.worth = n * alone / self.std_err**2

    def _std_err(self, labelled: int, rest: int, tuning: float) -> float:
        """Return the standard error with these numbers of cases, where errors vary as they do here."""
        squares = self._squares * (labelled - 1) / (self.labelled - 1) if labelled != self.labelled else self._squares
        within = (squares + self._unseen) / ((labelled - 1) * labelled)
        return math.sqrt(tuning**2 * self._spread_of_rest / rest + within)

    def labels_for(self, share: float) -> int | None:
        """Return how many more of the cases must be labelled to reduce the variance to a share; None: all would not."""
        most = self.unlabelled - 2
        target = math.sqrt(share) * self.std_err

        def enough(more: int) -> bool:
            labelled, rest = self.labelled + more, self.unlabelled - more
            return self._std_err(labelled, rest, self._slope / (1 + labelled / rest)) <= target

        if most < 1 or not enough(most):
            return None
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def corrected_mean(labels: ArrayLike, judged: ArrayLike, judged_unlabelled: ArrayLike) -> Corrected:
    """Return the corrected mean of graded scores 0–1; the labelled answers must be drawn at random."""
    y, f, rest = (np.asarray(a, dtype=np.float64) for a in (labels, judged, judged_unlabelled))
    common = _common(y, f, rest, "labels and marks")
    if reason := why_uncorrectable(y, f, rest):
        return _refusal(common, reason)
    estimate = LabelledMean(y, f, rest)
    low, high = estimate.interval()
    return Corrected(
        mean=_share(estimate.mean),
        ci95=(_share(low), _share(high)),
        tuning=estimate.tuning,
        worth=estimate.worth,
        **common,
    )


def corrected_share(labels: ArrayLike, judged: ArrayLike, judged_unlabelled: ArrayLike) -> Corrected:
    """Return the corrected share of passes of 0/1 verdicts.

    θ = P·A + (1 − P)·B, with P the judge's share of passes (Wilson), and A and B the shares that people pass where the
    judge does and where it does not (Jeffreys), each with its own limits.
    """
    y, f, rest = (np.asarray(a, dtype=np.float64) for a in (labels, judged, judged_unlabelled))
    common = _common(y, f, rest, "labels and verdicts")
    if reason := why_uncorrectable(y, f, rest):
        return _refusal(common, reason)
    total = len(y) + len(rest)
    passes = (float(f.sum()) + float(rest.sum())) / total
    low, high = wilson(passes, total)
    a, a_low, a_high = _jeffreys(int(np.sum(y[f == 1])), int(np.sum(f == 1)))
    b, b_low, b_high = _jeffreys(int(np.sum(y[f == 0])), int(np.sum(f == 0)))
    theta = passes * a + (1 - passes) * b
    if a < b:  # more passes make it worse
        low, high = high, low
    down = math.hypot(passes * (a - a_low), (1 - passes) * (b - b_low), (a - b) * (passes - low))
    up = math.hypot(passes * (a_high - a), (1 - passes) * (b_high - b), (a - b) * (high - passes))
    alone_low, alone_high = wilson(float(y.mean()), len(y))
    worth = len(y) * ((alone_high - alone_low) / (up + down)) ** 2
    ci95 = (max(0.0, theta - down), min(1.0, theta + up))
    return Corrected(mean=theta, ci95=ci95, tuning=a - b, worth=worth, **common)


def lang_reiczigel(labels: ArrayLike, judged: ArrayLike, judged_unlabelled: ArrayLike) -> Corrected:
    """Return the corrected share of passes of 0/1 verdicts, if the labelled answers were not drawn from these answers.

    The judge's sensitivity and specificity are taken from the labels, and only its share of passes from these answers
    (Lang and Reiczigel 2014).
    """
    y, f, rest = (np.asarray(a, dtype=np.float64) for a in (labels, judged, judged_unlabelled))
    common = _common(y, f, rest, "Lang–Reiczigel")
    good, bad, big = int(np.sum(y == 1)), int(np.sum(y == 0)), len(rest)
    if len(y) < FEWEST_LABELS or min(good, bad) < 1 or big < 2:
        return _refusal(
            common, f"at least {FEWEST_LABELS} labels, both right and wrong, and 2 unlabelled answers are needed"
        )
    z = normal_quantile(1 - ALPHA / 2)
    sensitivity = (float(np.sum(f[y == 1] == 1)) + 1) / (good + 2)
    specificity = (float(np.sum(f[y == 0] == 0)) + 1) / (bad + 2)
    skill = sensitivity + specificity - 1
    if skill <= 0:
        return _refusal(common, "the judge cannot tell right from wrong here")
    passes = (float(rest.sum()) + z**2 / 2) / (big + z**2)
    share = (passes + specificity - 1) / skill
    shift = (
        2
        * z**2
        * (
            share * sensitivity * (1 - sensitivity) / (good + 2)
            - (1 - share) * specificity * (1 - specificity) / (bad + 2)
        )
    )
    variance = (
        passes * (1 - passes) / (big + z**2)
        + share**2 * sensitivity * (1 - sensitivity) / (good + 2)
        + (1 - share) ** 2 * specificity * (1 - specificity) / (bad + 2)
    )
    half = z * math.sqrt(variance) / skill
    middle = share + shift
    return Corrected(mean=_share(share), ci95=(_share(middle - half), _share(middle + half)), tuning=skill, **common)


def wilson(p: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    z = normal_quantile(1 - ALPHA / 2)
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def _jeffreys(k: int, n: int) -> tuple[float, float, float]:
    """Return Jeffreys' estimate of a share of few cases, and its 95 % limits."""
    low, high = (beta_quantile(share, k + 0.5, n - k + 0.5) for share in (ALPHA / 2, 1 - ALPHA / 2))
    return (k + 0.5) / (n + 1), low, high


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def why_uncorrectable(labels: Floats, judged: Floats, rest: Floats) -> str:
    """Return why these labels cannot correct the rest; empty if they can."""
    if len(labels) < FEWEST_LABELS or len(rest) < 2:
        return f"at least {FEWEST_LABELS} labels and 2 unlabelled answers are needed (there are {len(labels)} labels)"
    return _beyond_labels(judged, rest)


def _common(y: Floats, f: Floats, rest: Floats, method: str) -> dict[str, Any]:
    everything = np.concatenate([f, rest])
    uncorrected = float(everything.mean()) if len(everything) else math.nan
    return {"uncorrected": uncorrected, "labelled": len(y), "unlabelled": len(rest), "method": method}


def _refusal(common: dict[str, Any], reason: str) -> Corrected:
    return Corrected(mean=None, ci95=None, refused=reason, **common)


def _beyond_labels(labelled: Floats, rest: Floats) -> str:
    """Return why the labels do not represent the rest: too many answers were judged outside the labelled range.

    If the labels were drawn at random, every choice of n out of all N answers is equally likely. So the probability
    that k or more of the rest lie beyond the lowest and highest of the chosen is known (it is smaller with ties). If
    that is next to impossible, the labels were not drawn at random, and a correction by them would be an extrapolation.
    """
    low, high = float(labelled.min()), float(labelled.max())
    beyond = int(np.sum((rest < low) | (rest > high)))
    n, total = len(labelled), len(labelled) + len(rest)
    if beyond == 0 or _chance_beyond(n, total, beyond, single=low == high) >= _CHANCE:
        return ""
    return (
        f"{100 * beyond / len(rest):.0f} % of the unlabelled answers were judged outside the labelled range "
        f"({100 * low:.0f} to {100 * high:.0f}): label answers drawn at random"
    )


def _chance_beyond(n: int, total: int, beyond: int, *, single: bool) -> float:
    """Return the probability that `beyond` or more of `total` lie outside the range of n chosen at random."""
    if single:  # all chosen have one value: they are n of the answers that have it
        return math.exp(_log_choose(total - beyond, n) - _log_choose(total, n))
    # The chosen span `width` + 1 places in order of value: total − width ways to place the span, n − 2 chosen inside.
    widths = np.arange(n - 1, total - beyond)
    if not len(widths):
        return 0.0
    # One more place multiplies the ways to choose n − 2 inside: C(w, n − 2) = C(w − 1, n − 2) · w / (w − n + 2).
    growth = np.log(widths[:-1]) - np.log(widths[:-1] - n + 2)
    inside = np.concatenate([[0.0], np.cumsum(growth)])  # logs; for the narrowest span there is one way
    return float(np.sum(np.exp(np.log(total - widths) + inside - _log_choose(total, n))))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
