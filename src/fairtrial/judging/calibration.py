"""Calibration of a judge: samples with a known score, the judge's marks, and a rating of its reliability."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.core.options import Problems, read
from fairtrial.core.score import Score, Unscored
from fairtrial.core.showing import Shown
from fairtrial.core.types_in_threads import look_into

SAMPLES = Path(__file__).parent / "samples.yaml"
_MOST_PROBLEMS = 5  # of samples that are told at once
_RATINGS = (  # (name, pass rate at least, mean absolute error at most, correlation at least)
    ("excellent", 0.90, 0.10, 0.9),
    ("good", 0.75, 0.15, 0.8),
    ("fair", 0.50, 0.25, 0.6),
)
_ADVICE = {
    "excellent": "Use it; calibrate again when its model or your instructions change.",
    "good": "Use it for comparisons; repeat runs 3–5 times, and check the samples that it missed.",
    "fair": "Use it only for large differences; sharpen its instructions or try a stronger model.",
    "poor": "Do not rely on it: its marks say little about the answers. Choose another judge.",
}


class CalibrationSample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer whose right score is known."""

    id: str
    question: str
    answer: str
    score: Annotated[float, msgspec.Meta(ge=0, le=100)]
    expected: str | None = None
    tolerance: Annotated[float, msgspec.Meta(gt=0, le=100)] = 15.0


class SampleResult(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's marks for one sample, all 0–1; `actual` is the mean over repeated runs."""

    id: str
    expected: float
    actual: float | None
    error: float | None
    absolute_error: float | None
    within_tolerance: bool
    spread: float | None
    notes: str


class CalibrationSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a judge; errors are shares of the scale, and a positive bias means scores that are too high."""

    judge: str
    created_at: float
    total: int
    passed: int
    pass_rate: float
    mean_absolute_error: float | None
    largest_error: float | None
    bias: float | None
    correlation: float | None
    spread: float | None
    unscored: int
    runs: int
    calls: int = 0
    cost_usd: float | None = 0.0


class Calibration(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """The result of calibrating a judge."""

    samples: tuple[SampleResult, ...]
    summary: CalibrationSummary
    rating: str
    recommendation: str
    judge_key: str
    prompt_hash: str


def load_samples(path: Path | None = None, built_in: Sequence[dict[str, Any]] | None = None) -> list[CalibrationSample]:
    """Load samples from a YAML or JSONL file, or the built-in ones."""
    if path is None and built_in is not None:
        return msgspec.convert(built_in, list[CalibrationSample])
    file = path or SAMPLES
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a UTF-8 text file"
        raise FairtrialError(f"cannot read the samples in {file}: {reason}") from None
    return parse_samples(text, str(file), jsonl=file.suffix == ".jsonl")


def parse_samples(text: str, name: str, *, jsonl: bool | None = None) -> list[CalibrationSample]:
    """Read samples from a text, YAML or JSONL; unless `jsonl` says which, by its first line."""
    items = _sample_items(text, name, jsonl=_is_jsonl(text) if jsonl is None else jsonl)
    if not isinstance(items, list) or not items:
        raise FairtrialError(f"{name} must be a list of samples with id, question, answer and score")
    problems: Problems = []
    samples = [read(CalibrationSample, item, problems, (number,)) for number, item in enumerate(items, 1)]
    found = [f"sample {'.'.join(map(str, where))}: {message}" for where, message in problems]
    first: dict[str, int] = {}
    for number, sample in enumerate(samples, 1):
        if sample is not None and first.setdefault(sample.id, number) != number:
            found.append(f"sample {number}: sample {first[sample.id]} has the id `{sample.id}` already")
    if found:
        more = [f"and {len(found) - _MOST_PROBLEMS} more"] if len(found) > _MOST_PROBLEMS else []
        raise FairtrialError("\n".join(found[:_MOST_PROBLEMS] + more))
    return [sample for sample in samples if sample is not None]


def _is_jsonl(text: str) -> bool:
    first = next((line for line in text.splitlines() if line.strip()), "")
    try:
        return isinstance(msgspec.json.decode(first), dict)
    except msgspec.DecodeError:
        return False


def _sample_items(text: str, name: str, *, jsonl: bool) -> Any:
    import yaml

    from fairtrial.text.yaml_text import read_yaml, reason_of  # yaml: only samples in a file need it

    if not jsonl:
        try:
            return read_yaml(text)  # as suites are read: `{question: Why?, …}` is fine
        except yaml.YAMLError as error:
            raise FairtrialError(f"cannot read the samples in {name}: {reason_of(error)}") from None
    items = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            items += [msgspec.json.decode(line)] if line.strip() else []
        except msgspec.DecodeError as error:
            raise FairtrialError(f"cannot read the samples in {name}: line {number} is not JSON ({error})") from None
    return items


def sample_result(sample: CalibrationSample, results: Sequence[Score | Unscored]) -> SampleResult:
    """Summarise one sample, judged once or several times; a missing judgement fails the sample and is never a 0."""
    expected = sample.score / 100
    values = [result.value for result in results if isinstance(result, Score)]
    missing = [result.message for result in results if isinstance(result, Unscored)]
    if missing or not values:
        return SampleResult(
            id=sample.id,
            expected=expected,
            actual=None,
            error=None,
            absolute_error=None,
            within_tolerance=False,
            spread=None,
            notes=f"no verdict: {missing[0] if missing else 'none'}",
        )
    actual = statistics.fmean(values)
    error = actual - expected
    return SampleResult(
        id=sample.id,
        expected=expected,
        actual=actual,
        error=error,
        absolute_error=abs(error),
        within_tolerance=abs(error) <= sample.tolerance / 100 + 1e-9,
        spread=statistics.stdev(values) if len(values) > 1 else None,
        notes=next(result.notes for result in results if isinstance(result, Score)),
    )


def calibration(
    results: Sequence[SampleResult],
    *,
    judge: str,
    judge_key: str,
    prompt_hash: str,
    runs: int,
    created_at: float,
    calls: int = 0,
    cost_usd: float | None = 0.0,
) -> Calibration:
    """Rate a judge from its results on the samples."""
    judged = [(r.expected, r.actual, r.error) for r in results if r.actual is not None and r.error is not None]
    errors = [error for _, _, error in judged]
    spreads = [r.spread for r in results if r.spread is not None]
    passed = sum(result.within_tolerance for result in results)
    summary = CalibrationSummary(
        judge=judge,
        created_at=created_at,
        total=len(results),
        passed=passed,
        pass_rate=passed / len(results),
        mean_absolute_error=statistics.fmean(map(abs, errors)) if errors else None,
        largest_error=max(map(abs, errors)) if errors else None,
        bias=statistics.fmean(errors) if errors else None,
        correlation=_pearson([a for a, _, _ in judged], [b for _, b, _ in judged]),
        spread=statistics.fmean(spreads) if spreads else None,
        unscored=len(results) - len(judged),
        runs=runs,
        calls=calls,
        cost_usd=cost_usd,
    )
    rating = _rating(summary)
    return Calibration(
        samples=tuple(results),
        summary=summary,
        rating=rating,
        recommendation=_ADVICE[rating],
        judge_key=judge_key,
        prompt_hash=prompt_hash,
    )


def _rating(summary: CalibrationSummary) -> str:
    """Return the best rating whose three limits all hold; an undefined number fails its limit."""
    error, r = summary.mean_absolute_error, summary.correlation
    if error is None or r is None:
        return "poor"
    for name, pass_rate, max_error, min_r in _RATINGS:
        if summary.pass_rate >= pass_rate and error <= max_error and r >= min_r:
            return name
    return "poor"


def _pearson(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return Pearson's correlation, or None if one of the two does not vary."""
    if len(a) < 2 or math.isclose(min(a), max(a)) or math.isclose(min(b), max(b)):
        return None
    try:
        return statistics.correlation(a, b)
    except (statistics.StatisticsError, ZeroDivisionError):  # the variation is below floating-point precision
        return None


look_into(Calibration, list[CalibrationSample])
