"""What the mean would be if people had judged everything: a few labels correct a cheap judge."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import normal_quantile, t_quantile

_LEAST_SKILL = 0.1
_CHANCE = 0.001
_FEWEST_LABELS = 10  # with fewer, people's marks may all be the same by chance, and the interval would be a point


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
    everything = np.concatenate([f, rest])
    uncorrected = float(everything.mean()) if len(everything) else math.nan
    if n < _FEWEST_LABELS or big < 2:
        return Corrected(
            mean=None,
            ci95=None,
            uncorrected=uncorrected,
            labelled=n,
            unlabelled=big,
            method="PPI++",
            refused=f"at least {_FEWEST_LABELS} labels, and 2 answers without one, are needed",
        )
    if reason := _beyond_labels(f, rest):
        return Corrected(
            mean=None,
            ci95=None,
            uncorrected=uncorrected,
            labelled=n,
            unlabelled=big,
            method="PPI++",
            refused=reason,
        )
    spread = float(np.var(everything, ddof=1))
    shared = float(np.cov(y, f, ddof=1)[0, 1])
    tuning = shared / (spread * (1 + n / big)) if spread > 0 else 0.0
    corrected = y - tuning * f
    mean = tuning * float(rest.mean()) + float(corrected.mean())
    variance = tuning**2 * float(np.var(rest, ddof=1)) / big + float(np.var(corrected, ddof=1)) / n
    half = t_quantile(0.975, n - 1) * math.sqrt(variance)
    return Corrected(
        mean=mean,
        ci95=(mean - half, mean + half),
        uncorrected=uncorrected,
        labelled=n,
        unlabelled=big,
        method="PPI++",
        tuning=tuning,
    )


def rogan_gladen(labels: ArrayLike, judged: ArrayLike, judged_unlabelled: ArrayLike) -> Corrected:
    """Rogan–Gladen for 0/1 verdicts: the judge's rates of error, from the labels, taken out of its rate of passes."""
    y, f, rest = (np.asarray(a, dtype=np.float64) for a in (labels, judged, judged_unlabelled))
    n0, n1, big = int(np.sum(y == 0)), int(np.sum(y == 1)), len(rest)
    p = float(rest.mean()) if big else math.nan
    common = {"uncorrected": p, "labelled": len(y), "unlabelled": big, "method": "Rogan–Gladen"}
    if n0 < 2 or n1 < 2 or big < 2:
        reason = "at least 2 labels of each kind, and 2 answers without one, are needed"
        return Corrected(mean=None, ci95=None, refused=reason, **common)  # type: ignore[arg-type]
    if reason := _beyond_labels(f, rest):
        return Corrected(mean=None, ci95=None, refused=reason, **common)  # type: ignore[arg-type]
    q0, q1 = float(np.mean(f[y == 0] == 0)), float(np.mean(f[y == 1] == 1))
    skill = q0 + q1 - 1
    if skill < _LEAST_SKILL:
        reason = f"the judge can hardly tell right from wrong here (specificity + sensitivity − 1 = {skill:.2f})"
        return Corrected(mean=None, ci95=None, refused=reason, **common)  # type: ignore[arg-type]
    theta = min(1.0, max(0.0, (p + q0 - 1) / skill))
    variance = (p * (1 - p) / big + (1 - theta) ** 2 * q0 * (1 - q0) / n0 + theta**2 * q1 * (1 - q1) / n1) / skill**2
    half = normal_quantile(0.975) * math.sqrt(variance)
    interval = (max(0.0, theta - half), min(1.0, theta + half))
    return Corrected(mean=theta, ci95=interval, tuning=skill, **common)  # type: ignore[arg-type]


def _beyond_labels(labelled: NDArray[np.float64], rest: NDArray[np.float64]) -> str:
    """Why labels do not speak for the rest: too much of it was judged outside the range that they cover.

    Labels on n answers drawn at random leave a share of 1 − c or more outside their range with probability
    n·cⁿ⁻¹ − (n − 1)·cⁿ (for any distribution; less with ties). Where that is next to impossible, they were not drawn
    at random, and to correct by them would be to extrapolate.
    """
    low, high = float(labelled.min()), float(labelled.max())
    inside = float(np.mean((rest >= low) & (rest <= high)))
    n = len(labelled)
    if n * inside ** (n - 1) - (n - 1) * inside**n >= _CHANCE:
        return ""
    return (
        f"{100 * (1 - inside):.0f} % of the answers without a label were judged outside the labelled range "
        f"({100 * low:.0f} to {100 * high:.0f}): label answers drawn at random"
    )
