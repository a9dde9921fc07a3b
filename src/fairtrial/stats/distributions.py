"""Student's t, normal, beta and F distributions without scipy.

`scipy.special` has them too, but importing it takes 0.5 s and a wheel of 35 MB for what are a few small functions here;
the tests check them against scipy to 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

_TINY = 1e-300
_NORMAL = NormalDist()


def negligible(spread: float, largest: float) -> bool:
    """Return whether a spread is only rounding error: 0.1 three times is not exactly 0.3."""
    return spread <= 1e-12 * max(1.0, abs(largest))


def normal_quantile(p: float) -> float:
    """Return the z below which a standard normal variable falls with probability p."""
    return _NORMAL.inv_cdf(p)


def normal_cdf(z: float) -> float:
    """Return the probability that a standard normal variable is at most z."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def beta_inc(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the continued fraction converges fast only on this side
        return 1.0 - beta_inc(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / a * _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction with Lentz's method."""
    c, d = 1.0, 1.0 / ((1.0 - (a + b) * x / (a + 1)) or _TINY)
    value = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1.0 / ((1.0 + step * d) or _TINY)
            c = (1.0 + step / c) or _TINY
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the x below which a beta variable falls with probability p."""
    if not 0 < p < 1:
        return 0.0 if p <= 0 else 1.0
    log_scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)

    def density(x: float) -> float:
        return math.exp(log_scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x))

    return _where(lambda x: beta_inc(a, b, x) - p, density, start=a / (a + b), low=0.0, high=1.0)


def _where(
    excess: Callable[[float], float], slope: Callable[[float], float], *, start: float, low: float, high: float
) -> float:
    """Return where an increasing function is 0, by Newton's method; halve the range where that would leave it."""
    x = start
    for _ in range(200):
        value, rise = excess(x), slope(x)
        low, high = (x, high) if value < 0 else (low, x)
        step = value / rise if rise else math.inf
        if abs(step) <= 1e-9 * x:
            return x - step  # the last step squares what was missing
        x -= step
        if not low < x < high:
            x = (low + high) / 2 if math.isfinite(high) else 2 * low
            if x in (low, high):
                break
    return x


def t_cdf(t: float, df: float) -> float:
    """Return the probability that Student's t with `df` degrees of freedom is at most t."""
    if t * t < df:  # near the centre, adding to one half keeps the digits of a small t
        return 0.5 + math.copysign(0.5, t) * beta_inc(0.5, df / 2, t * t / (df + t * t))
    tail = 0.5 * beta_inc(df / 2, 0.5, df / (df + t * t))
    return 1.0 - tail if t > 0 else tail


def t_two_sided(t: float, df: float) -> float:
    """Return the probability that Student's t is at least as far from 0 as t."""
    return 2 * t_cdf(-abs(t), df)


def f_above(f: float, df1: float, df2: float) -> float:
    """Return the probability that Fisher's F is at least f."""
    return beta_inc(df2 / 2, df1 / 2, df2 / (df2 + df1 * f)) if f > 0 else 1.0


@lru_cache(maxsize=256)  # the same few degrees of freedom are used again and again
def t_quantile(p: float, df: float) -> float:
    """Return the t below which Student's t falls with probability p."""
    if p < 0.5:
        return -t_quantile(1 - p, df)
    if p == 0.5:
        return 0.0
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)

    def density(t: float) -> float:
        return math.exp(log_scale - (df + 1) / 2 * math.log1p(t * t / df))

    # The tails of t are heavier than normal ones, so the way leads upwards from the normal quantile.
    return _where(lambda t: t_cdf(t, df) - p, density, start=normal_quantile(p), low=0.0, high=math.inf)
