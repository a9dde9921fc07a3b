"""Student's t, normal, beta and F distributions without scipy.

`scipy.special` has them too, but importing it takes 0.5 s and a wheel of 35 MB for what are a few small functions here;
the tests check them against scipy to 1e-9.
"""

from __future__ import annotations

import math
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
    c, d = 1.0, 1.0 / _nonzero(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1.0 / _nonzero(1.0 + step * d)
            c = _nonzero(1.0 + step / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def _nonzero(number: float) -> float:
    return number if abs(number) > _TINY else _TINY


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the x below which a beta variable falls with probability p."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if beta_inc(a, b, middle) < p else (low, middle)
    return (low + high) / 2


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
    low, high = 0.0, 2.0
    while t_cdf(high, df) < p:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_cdf(middle, df) < p else (low, middle)
    return (low + high) / 2
