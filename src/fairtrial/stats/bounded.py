"""The bounded interval's kernel: sums of values that a Dirichlet distribution weights (Gaffke; Learned-Miller, Thomas).

It assumes of a sample only that no value is off the scale: one unseen unit is at its end.
"""

from __future__ import annotations

import math
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from fairtrial.stats.distributions import beta_inc, normal_cdf, normal_quantile

Floats = NDArray[np.float64]

_STEP, _START, _END, _CHUNK = 0.04, -10.0, 40.0, 80
_AWAY = 0.5
_MOST_KNOWN = 10_000
_SURELY = 1.25  # how far from a level the quick value must be: it is right to some hundredths of itself
_MIDDLE = 0.05  # standard deviations from the middle, where the quick formula is 0 / 0
_known: dict[tuple[bytes, float], float] = {}  # what `share_above` returned; keys of a fixed size, whatever the units


def share_above(values: Floats, shapes: Floats, point: float) -> float:
    """Return P(Σ w·values > point) for w ~ Dirichlet(shapes); the values are sorted, each is there once.

    Headlines, tables and charts ask for the same limits again and again, each through a mean of its own.
    """
    key = blake2b(values.tobytes() + shapes.tobytes(), digest_size=16).digest(), point
    found = _known.get(key)
    if found is None:
        found = _integral(values, shapes, point)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[key] = found
    return found


def share_is_below(values: Floats, shapes: Floats, point: float, *, side: int, level: float) -> bool:
    """Return whether less than `level` of the distribution is below (−1) or above (1) a point.

    Only near the level is it worth the integral; elsewhere Lugannani and Rice's saddle point is enough.
    """
    quick = _quick_share(values, shapes, point, side)
    if quick is not None and not level / _SURELY < quick < level * _SURELY:
        return quick < level
    above = share_above(values, shapes, point)
    return (above if side > 0 else 1 - above) < level


def quantile(values: Floats, shapes: Floats, share: float) -> float:
    """Return the point below which Σ w·values falls with probability `share`."""
    low, span = float(values[0]), float(values[-1] - values[0])
    return low + span * _unit_quantile((values - low) / span, shapes, share) if span else low


def _integral(values: Floats, shapes: Floats, point: float) -> float:
    """Compute this probability.

    A Dirichlet is gammas divided by their sum, so only the sign of Σ gamma·(value − point) matters. Its probability is
    an integral over the moment generating function along any vertical line of the complex plane. On the line through
    the saddle point nothing oscillates, however many units there are, and small probabilities keep their digits.
    """
    if point <= values[0] or point >= values[-1]:
        return 0.0 if point >= values[-1] else 1.0
    if len(values) == 2:  # a beta distribution
        low, high = (float(value) for value in values)
        return 1 - beta_inc(float(shapes[1]), float(shapes[0]), (point - low) / (high - low))
    c = (values - point) / float(values[-1] - values[0])  # the sign stays the same, and no square gets too small
    apart = np.abs(c) > 1e-13
    c, shapes = c[apart], shapes[apart]
    if c[0] > 0 or c[-1] < 0:
        return 1.0 if c[0] > 0 else 0.0
    line = _saddle(c, shapes)
    spread = math.sqrt(float(np.sum(shapes * c**2)))
    if abs(line) * spread < _AWAY:  # the integrand has a pole at 0: keep the line at some distance
        line = min(_AWAY / spread, 0.5 / float(c[-1]))
    tilted = c / (1 - line * c)
    height = math.exp(-float(shapes @ np.log1p(-line * c)))  # of the moment generating function on the line
    scale = math.sqrt(float(np.sum(shapes * tilted**2)))
    total, before = 0.0, 0.0
    for start in np.arange(_START, _END, _STEP * _CHUNK):
        y = np.exp(start + _STEP * np.arange(_CHUNK)) / scale
        angle, faded = np.zeros(_CHUNK), np.zeros(_CHUNK)
        for first in range(0, len(tilted), 8192):  # bounded memory, however many units there are
            part = slice(first, first + 8192)
            turned = np.multiply.outer(y, tilted[part])
            angle += np.arctan(turned) @ shapes[part]
            faded += np.log1p(turned**2) @ shapes[part]
        curve = (np.exp(1j * angle - 0.5 * faded) / (line + 1j * y)).real * y
        total += float(curve.sum())
        before = before or float(curve[0]) / math.expm1(_STEP)  # left of the grid the integrand is e^v times a constant
        if start > 0 and abs(float(curve[-1])) < 1e-17:
            break
    tail = _STEP / math.pi * height * (total + before)
    return min(1.0, max(0.0, tail if line > 0 else 1.0 + tail))


def _quick_share(values: Floats, shapes: Floats, point: float, side: int) -> float | None:
    """Return roughly the share below (−1) or above (1) a point (Lugannani and Rice); None where that does not work."""
    if not values[0] < point < values[-1]:
        return None
    c = (values - point) / float(values[-1] - values[0])
    apart = np.abs(c) > 1e-13
    c, shapes = c[apart], shapes[apart]
    if c[0] > 0 or c[-1] < 0:
        return None
    line = _saddle(c, shapes)
    height = -float(shapes @ np.log1p(-line * c))
    root = math.copysign(math.sqrt(max(0.0, -2 * height)), line)
    skewed = line * math.sqrt(float(shapes @ (c / (1 - line * c)) ** 2))
    if abs(root) < _MIDDLE or not skewed:
        return None
    density = math.exp(-(root**2) / 2) / math.sqrt(2 * math.pi)
    return normal_cdf(side * -root) + side * density * (1 / skewed - 1 / root)


def _saddle(c: Floats, shapes: Floats) -> float:
    """Return roughly where the moment generating function of Σ gamma·c is smallest, by Newton steps in a bracket."""
    low, high = 1 / float(c[0]), 1 / float(c[-1])  # c[0] < 0 < c[-1]
    at = 0.0
    for _ in range(80):
        tilted = c / (1 - at * c)
        slope, curvature = float(shapes @ tilted), float(shapes @ tilted**2)
        if abs(slope) < 1e-3 * math.sqrt(curvature):  # close enough: the integral is the same along every line
            break
        low, high = (at, high) if slope < 0 else (low, at)
        step = at - slope / curvature
        at = step if low < step < high else (low + high) / 2
    return at


def _unit_quantile(values: Floats, shapes: Floats, share: float) -> float:
    """Return the same quantile for values from 0 to 1.

    On the scale of normal deviates the distribution function is nearly a straight line, so false position (Illinois)
    takes a few steps from the first guess by mean and variance.
    """
    low, high = 0.0, 1.0
    count = float(shapes.sum())
    middle = float(shapes @ values) / count
    spread = math.sqrt(float(shapes @ (values - middle) ** 2) / count / (count + 1))
    wanted = normal_quantile(share)

    def off(point: float) -> float:
        below = 1 - share_above(values, shapes, point)
        return normal_quantile(min(1 - 1e-15, max(1e-15, below))) - wanted

    guess = min(1 - 1e-9, max(1e-9, middle + wanted * spread))
    spread = max(1e-9, spread)
    at_guess = off(guess)
    f_low, f_high = (at_guess, None) if at_guess < 0 else (None, at_guess)
    low, high = (guess, high) if at_guess < 0 else (low, guess)
    while f_low is None or f_high is None:  # find a bracket: step out until the sign changes or the scale ends
        spread *= 2
        edge = 1.0 if f_high is None else 0.0
        point = min(edge, guess + spread) if f_high is None else max(edge, guess - spread)
        value = (8.0 if f_high is None else -8.0) if point == edge else off(point)
        if value > 0:
            high, f_high = point, value
        else:
            low, f_low = point, value
    side = 0
    for _ in range(100):
        point = (low * f_high - high * f_low) / (f_high - f_low)
        value = off(point)
        if abs(value) < 1e-10 or high - low < 1e-13:
            break
        if value < 0:
            low, f_low = point, value
            f_high = f_high / 2 if side == 1 else f_high
            side = 1
        else:
            high, f_high = point, value
            f_low = f_low / 2 if side == -1 else f_low
            side = -1
    return point
