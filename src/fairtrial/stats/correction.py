"""What the mean would be if people had judged everything: a few labels correct a cheap judge."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import normal_quantile, t_quantile

_LEAST_SKILL = 0.1
_CHANCE = 0.01
_FEWEST_LABELS = 10
_FEWEST_BINARY, _FEWEST_OF_A_KIND = 30, 5  # 0/1 labels; with fewer, intervals hold in far less than 95 % of samples

Floats = NDArray[np.float64]


class Corrected(msgspec.Struct, frozen=True, kw_only=True):
    """A corrected mean. `mean` is None where the correction is refused, and `refused` says why."""

    mean: float | None
    ci95: tuple[float, float] | None
    uncorrected: float
    labelled: int
    unlabelled: int
    method: str
    tuning: float | None = None
    refused: str = ""


def ppi_mean(labels: ArrayLike, judged: ArrayLike, judged_unlabelled: ArrayLike) -> Corrected:
    """PPI++: λ·mean(judge, unlabelled) + mean(label − λ·judge, labelled), λ chosen for the smallest variance."""
    y, f, rest = (np.asarray(a, dtype=np.float64) for a in (labels, judged, judged_unlabelled))
    n, big = len(y), len(rest)
    common = _common(y, f, rest, "PPI++")
    if n < _FEWEST_LABELS or big < 2:
        return _refusal(common, f"at least {_FEWEST_LABELS} labels, and 2 answers without one, are needed")
    if reason := _too_few_of_a_kind(y) or _beyond_labels(f, rest):
        return _refusal(common, reason)
    spread = float(np.var(np.concatenate([f, rest]), ddof=1))
    shared = float(np.cov(y, f, ddof=1)[0, 1])
    tuning = shared / (spread * (1 + n / big)) if spread > 0 else 0.0
    corrected = y - tuning * f
    mean = tuning * float(rest.mean()) + float(corrected.mean())
    variance = tuning**2 * float(np.var(rest, ddof=1)) / big + float(np.var(corrected, ddof=1)) / n
    if variance <= 0:
        return _refusal(common, "all labels are the same, and so are all marks: that says nothing of the spread")
    half = t_quantile(0.975, n - 1) * math.sqrt(variance)
    return Corrected(mean=mean, ci95=(mean - half, mean + half), tuning=tuning, **common)


def rogan_gladen(labels: ArrayLike, judged: ArrayLike, judged_unlabelled: ArrayLike) -> Corrected:
    """Rogan–Gladen for 0/1 verdicts: the judge's rates of error, from the labels, taken out of its rate of passes."""
    y, f, rest = (np.asarray(a, dtype=np.float64) for a in (labels, judged, judged_unlabelled))
    n0, n1, big = int(np.sum(y == 0)), int(np.sum(y == 1)), len(rest)
    common = _common(y, f, rest, "Rogan–Gladen")
    if big < 2:
        return _refusal(common, "2 answers without a label are needed")
    if reason := _too_few_of_a_kind(y) or _beyond_labels(f, rest):
        return _refusal(common, reason)
    p = float(rest.mean())
    q0, q1 = float(np.mean(f[y == 0] == 0)), float(np.mean(f[y == 1] == 1))
    skill = q0 + q1 - 1
    if skill < _LEAST_SKILL:
        return _refusal(
            common, f"the judge can hardly tell right from wrong here (specificity + sensitivity − 1 = {skill:.2f})"
        )
    theta = min(1.0, max(0.0, (p + q0 - 1) / skill))
    variance = (p * (1 - p) / big + (1 - theta) ** 2 * q0 * (1 - q0) / n0 + theta**2 * q1 * (1 - q1) / n1) / skill**2
    half = normal_quantile(0.975) * math.sqrt(variance)
    interval = (max(0.0, theta - half), min(1.0, theta + half))
    return Corrected(mean=theta, ci95=interval, tuning=skill, **common)


def _common(y: Floats, f: Floats, rest: Floats, method: str) -> dict[str, Any]:
    everything = np.concatenate([f, rest])
    uncorrected = float(everything.mean()) if len(everything) else math.nan
    return {"uncorrected": uncorrected, "labelled": len(y), "unlabelled": len(rest), "method": method}


def _refusal(common: dict[str, Any], reason: str) -> Corrected:
    return Corrected(mean=None, ci95=None, refused=reason, **common)


def _too_few_of_a_kind(y: Floats) -> str:
    """With 0/1 labels of nearly one kind no interval holds: how rare the other kind is remains unknown."""
    counts = (int(np.sum(y == 0)), int(np.sum(y == 1)))
    if sum(counts) < len(y) or (min(counts) >= _FEWEST_OF_A_KIND and len(y) >= _FEWEST_BINARY):
        return ""
    return (
        f"at least {_FEWEST_BINARY} labels, and {_FEWEST_OF_A_KIND} of each kind, are needed "
        f"(there are {counts[0]} and {counts[1]})"
    )


def _beyond_labels(labelled: Floats, rest: Floats) -> str:
    """Why labels do not speak for the rest: too much of it was judged outside the range that they cover.

    Where labels were drawn at random, every choice of n out of all N answers is as likely as any other; so it is known
    how likely it is that k or more of the rest lie beyond the lowest and highest of the chosen (less with ties). Where
    that is next to impossible, they were not drawn at random, and to correct by them would be to extrapolate.
    """
    low, high = float(labelled.min()), float(labelled.max())
    beyond = int(np.sum((rest < low) | (rest > high)))
    n, total = len(labelled), len(labelled) + len(rest)
    if beyond == 0 or _chance_beyond(n, total, beyond, single=low == high) >= _CHANCE:
        return ""
    return (
        f"{100 * beyond / len(rest):.0f} % of the answers without a label were judged outside the labelled range "
        f"({100 * low:.0f} to {100 * high:.0f}): label answers drawn at random"
    )


def _chance_beyond(n: int, total: int, beyond: int, *, single: bool) -> float:
    """The probability that so many of `total` lie beyond n of them that were chosen at random."""
    if single:  # all of the chosen have one value: they are n out of those that have it
        return math.exp(_log_choose(total - beyond, n) - _log_choose(total, n))
    # The chosen span `width` + 1 places in order of value: total − width ways to lay it, and n − 2 more inside.
    widths = np.arange(n - 1, total - beyond)
    logs = [math.log(total - w) + _log_choose(int(w) - 1, n - 2) - _log_choose(total, n) for w in widths]
    return float(np.sum(np.exp(logs))) if logs else 0.0


def _log_choose(n: int, k: int) -> float:
    if k < 0 or k > n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
