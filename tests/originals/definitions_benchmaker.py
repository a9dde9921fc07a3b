"""What Benchmaker defines, as plain arithmetic: scorers, aggregates, statistics over runs, calibration, costs.

Written anew, after its description and, where that is silent, after what it does (how deviations are divided, how p is
taken, which weight 0 has). Nothing of ours is imported, so that two ways to the same number meet in the tests.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

DEFAULTS = {"temperature": 0.7, "top_p": 1, "max_tokens": 2048, "frequency_penalty": 0, "presence_penalty": 0}
LOCKED = {"temperature": 0, "frequency_penalty": 0, "presence_penalty": 0}  # in benchmark mode
CONCURRENCY, TIMEOUT_SECONDS, EMPTY_RETRIES, EMPTY_WAIT_MS = 5, 120, 2, 400
RUN_COUNTS = (3, 5, 10)
JUDGE_TEMPERATURE, CODE_JUDGE_TEMPERATURE, QUICK_CODE_CHARACTERS = 0.1, 0.3, 5000
CODE_WEIGHTS = {"visual_accuracy": 0.40, "code_quality": 0.30, "functionality": 0.20, "responsiveness": 0.10}
RATINGS = {"excellent": (0.90, 0.10, 0.9), "good": (0.75, 0.15, 0.8), "fair": (0.50, 0.25, 0.6)}
Z = 1.96


# -- scorers, 0 to 1 -------------------------------------------------------------------------------


def distance(a: str, b: str) -> int:
    """The fewest insertions, deletions and substitutions from one text to the other."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
    return row[-1]


def exact_match(response: str, expected: str) -> float:
    """Graded: identical, other case, contained with extra text, or similar."""
    got, wanted = response.strip(), expected.strip()
    if got == wanted:
        return 1.0
    if got.lower() == wanted.lower():
        return 0.95
    for top, floor, text, part in ((0.95, 0.60, got, wanted), (0.90, 0.55, got.lower(), wanted.lower())):
        if part in text:
            return max(floor, top - 0.35 * (1 - len(wanted) / len(got)))
    longest = max(len(got), len(wanted))
    similarity = 1 - distance(got, wanted) / longest
    return 0.7 * similarity if similarity > 0.5 else 0.4 * similarity if similarity > 0.2 else 0.0


def regex_match(response: str, pattern: str) -> float:
    """All or nothing; `/pattern/flags`, or the pattern alone."""
    flags = 0
    if written := re.fullmatch(r"/(.*)/([a-z]*)", pattern, re.DOTALL):
        pattern = written[1]
        for letter in written[2]:
            flags |= {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}.get(letter, 0)
    return float(re.search(pattern, response, flags) is not None)


def numbers_in(text: str) -> list[float]:
    """All numbers, scientific notation included."""
    return [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", text)]


def numeric_tolerance(response: str, expected: str, *, absolute_too: bool = True) -> float:
    """Within 1 % (as a share, or in absolute terms) everything; then 1 − √(error / 25 %)."""
    target, found = float(expected), numbers_in(response)
    if not found:
        return 0.0
    errors = [(abs(number - target), abs(number - target) / abs(target) if target else abs(number)) for number in found]
    if any(share <= 0.01 + 1e-12 or (absolute_too and gap <= 0.01) for gap, share in errors):
        return 1.0
    return max(0.0, 1 - math.sqrt(min(share for _, share in errors) / 0.25))


def boolean(response: str, expected: str) -> float:
    """Whether the text is in the answer, in any case; without a text, always."""
    return float(expected.strip().lower() in response.lower())


def judged(mark: float) -> float:
    """A mark from 0 to 10."""
    return min(max(mark, 0.0), 10.0) / 10


def code_judged(marks: dict[str, float]) -> float:
    """Four marks from 0 to 100, weighed."""
    return sum(CODE_WEIGHTS[name] * marks[name] for name in CODE_WEIGHTS) / 100


# -- aggregates ------------------------------------------------------------------------------------


def weighted_mean(scores: Sequence[float], weights: Sequence[float]) -> float:
    return sum(score * weight for score, weight in zip(scores, weights, strict=True)) / sum(weights)


def spread(scores: Sequence[float]) -> float:
    """The deviation over all values, divided by their number (not by one less)."""
    middle = sum(scores) / len(scores)
    return math.sqrt(sum((score - middle) ** 2 for score in scores) / len(scores))


def interval(middle: float, deviation: float, count: int) -> tuple[float, float]:
    """Mean ± 1.96·σ/√n, within 0 and 1; a single value has no width."""
    half = Z * deviation / math.sqrt(count) if count > 1 else 0.0
    return max(0.0, middle - half), min(1.0, middle + half)


def over_runs(scores: Sequence[float]) -> dict[str, object]:
    """Several runs of one model, by their means."""
    middle, deviation = sum(scores) / len(scores), spread(scores)
    bounds = interval(middle, deviation, len(scores))
    return {"mean": middle, "sd": deviation, "min": min(scores), "max": max(scores), "ci95": bounds}


def compare_models(a: Sequence[float], b: Sequence[float]) -> dict[str, float] | None:
    """Two models by their run means: pooled standard error, t, Cohen's d; None with fewer than two runs of either."""
    if min(len(a), len(b)) < 2:
        return None
    means = sum(a) / len(a), sum(b) / len(b)
    squares = sum((x - means[0]) ** 2 for x in a) + sum((x - means[1]) ** 2 for x in b)
    variance = squares / (len(a) + len(b) - 2)
    error = math.sqrt(variance * (1 / len(a) + 1 / len(b)))
    difference = means[0] - means[1]
    return {
        "mean_a": means[0],
        "mean_b": means[1],
        "score_diff": difference,
        "pooled_std_err": error,
        "t_statistic": difference / error,
        "effect_size": difference / math.sqrt(variance),
    }


def normal_p(t: float) -> float:
    """Its two-tailed p-value: it takes t as normal."""
    return math.erfc(abs(t) / math.sqrt(2))


def effect(d: float) -> str:
    size = abs(d)
    return "negligible" if size < 0.2 else "small" if size < 0.5 else "medium" if size < 0.8 else "large"


# -- calibration -----------------------------------------------------------------------------------


def calibration(right: Sequence[float], given: Sequence[float], tolerances: Sequence[float]) -> dict[str, float]:
    errors = [mark - truth for truth, mark in zip(right, given, strict=True)]
    n, passed = len(errors), sum(abs(e) <= t + 1e-12 for e, t in zip(errors, tolerances, strict=True))
    mx, my = sum(right) / n, sum(given) / n
    covariance = sum((x - mx) * (y - my) for x, y in zip(right, given, strict=True))
    return {
        "total": n,
        "passed": passed,
        "pass_rate": passed / n,
        "mean_absolute_error": sum(map(abs, errors)) / n,
        "largest_error": max(map(abs, errors)),
        "bias": sum(errors) / n,
        "correlation": covariance / (n * spread(right) * spread(given)),
    }


def rating(pass_rate: float, error: float, correlation: float) -> str:
    """The best of which all three limits hold."""
    for name, (least, most, r) in RATINGS.items():
        if pass_rate >= least and error <= most and correlation >= r:
            return name
    return "poor"


# -- execution -------------------------------------------------------------------------------------


def empty_waits_ms() -> list[float]:
    """How long it waits before it asks again after an empty response."""
    return [EMPTY_WAIT_MS * (attempt + 1) for attempt in range(EMPTY_RETRIES)]


def cost(prompt_tokens: int, completion_tokens: int, prompt_price: float, completion_price: float) -> float:
    """Prices are per token."""
    return prompt_tokens * prompt_price + completion_tokens * completion_price


def report(model: str, middle: float, deviation: float, bounds: tuple[float, float]) -> str:
    low, high = (100 * bound for bound in bounds)
    return f"{model}: {100 * middle:.1f} ± {100 * deviation:.1f} (95% CI: [{low:.1f}, {high:.1f}])"
