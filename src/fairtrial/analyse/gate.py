"""A gate for continuous integration: passed, failed, or nobody can tell yet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np

from fairtrial.analyse.compare import compare
from fairtrial.analyse.comparison import Comparison
from fairtrial.analyse.planning import cases_to_pass
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable, Source, check_metric, pick, read_scores
from fairtrial.analyse.wording.comparisons import Scale
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import Aggregate
from fairtrial.stats.units import Interval, Measured

Result = Literal["passed", "failed", "cannot tell"]
Unsure = Literal["pass", "fail", "101"]  # the outcome of a gate that cannot tell
EXIT_CODES: dict[Result, int] = {"passed": 0, "failed": 100, "cannot tell": 101}
DEFAULT_MARGIN = 0.05  # the acceptable loss if no margin is given
_ROUNDING = 1e-9


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The requirements of a gate. Scores are 0–1; `these_cases` asks about these very cases, not cases like them."""

    min_score: float | None = None
    margin: float | None = None
    min_coverage: float = 0.95
    metric: str = SCORE
    arms: tuple[str, ...] = ()
    these_cases: bool = False
    largest: float | None = None  # the largest difference a case can show, if that is less than the scale allows
    unsure: Unsure = "101"


class GateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement checked for one arm, in words and in numbers (scores 0–1)."""

    name: str
    arm: str
    result: Result
    message: str
    value: Measured | None = None
    interval: Interval | None = None
    limit: Measured | None = None


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Every check, the overall result, and notes to read before trusting it."""

    run_ids: list[str]
    against: list[str]
    checks: list[GateCheck]
    notes: list[str] = []
    unsure: Unsure = "101"

    def __repr__(self) -> str:
        reasons = "; ".join(gate_line(check) for check in self.checks if check.result != "passed")
        return f"<Gate {self.result}{': ' if reasons else ''}{reasons}>"

    def __bool__(self) -> bool:
        """Whether it passed: `assert ft.gate(run, min_score=80)`; what nobody can tell has not passed."""
        return self.result == "passed"

    def _repr_html_(self) -> str:
        from fairtrial.analyse.wording.html import gate_html

        return gate_html(self)

    @property
    def result(self) -> Result:
        """Return `failed` if any check failed, else `cannot tell` if any check is undecided, else `passed`."""
        results = {check.result for check in self.checks}
        return "failed" if "failed" in results else "cannot tell" if "cannot tell" in results else "passed"

    @property
    def exit_code(self) -> int:
        """Return 0, 100 or 101; `unsure` sets the code for `cannot tell`."""
        if self.result == "cannot tell":
            return {"pass": 0, "fail": 100, "101": 101}[self.unsure]
        return EXIT_CODES[self.result]


def gate(source: Source, against: Source | None, terms: Terms) -> Gate:
    """Check a run or series against its terms and, if given, against an earlier one."""
    _check_terms(terms, against)
    if against is not None and {run.id for run in source.runs} & {run.id for run in against.runs}:
        raise FairtrialError("a run cannot be gated against itself: name an earlier run, or give that run a tag")
    scores = read_scores([source] if against is None else [source, against])
    own = [one for one in scores.arms if one.source is source]
    check_metric(own, terms.metric)
    if terms.arms:
        own = [pick(scores._replace(arms=tuple(own)), name) for name in terms.arms]
    checks = [*_coverage(own, terms)]
    notes: list[str] = []
    if terms.min_score is not None:
        checks += _minimum(scores, own, terms, terms.min_score)
    if against is not None:
        regression_checks, notes = _regression(scores, own, against, terms)
        checks += regression_checks
    if terms.min_score is None and against is None:
        notes = ["Only coverage was checked: --min-score and --against check more."]
    return Gate(
        run_ids=[run.id for run in source.runs],
        against=[run.id for run in against.runs] if against else [],
        checks=checks,
        notes=notes,
        unsure=terms.unsure,
    )


def _check_terms(terms: Terms, against: Source | None) -> None:
    """Reject thresholds that cannot be intended."""
    if terms.metric:
        if against is not None and terms.margin is None:
            raise FairtrialError(
                f"no acceptable loss of `{terms.metric}` is known: give --margin, on the metric's own scale"
            )
        return
    least = terms.min_score
    if least is not None and 0 < least <= 0.01:
        raise FairtrialError(
            f"scores are 0 to 100: a minimum of {100 * least:g} demands nothing; did you mean {1e4 * least:g}?"
        )
    if least is not None and not 0 <= least <= 1:
        raise FairtrialError(f"scores are 0 to 100: a minimum of {100 * least:g} is out of range")
    if terms.margin is not None and terms.margin > 1:
        raise FairtrialError(f"scores are 0 to 100: a margin of {100 * terms.margin:g} points allows any loss")


def _coverage(own: Sequence[ArmScores], terms: Terms) -> Iterator[GateCheck]:
    for entry in own:
        share = entry.scored / entry.planned if entry.planned else 0.0
        yield GateCheck(
            name="coverage",
            arm=entry.arm.name,
            result="passed" if share >= terms.min_coverage - _ROUNDING else "failed",
            message=f"{entry.scored} of {entry.planned} trials have a score (at least {100 * terms.min_coverage:g} %)",
            value=share,
            limit=terms.min_coverage,
        )


def _minimum(scores: ScoreTable, own: Sequence[ArmScores], terms: Terms, least: float) -> Iterator[GateCheck]:
    """Check the minimum; it is met only if it is met without failed trials and with them counted as the worst score."""
    scale = Scale(terms.metric)
    if own and own[0].sign(terms.metric) < 0:
        raise FairtrialError(f"lower is better for `{terms.metric}`: it cannot have a minimum; use --against")
    for entry in own:
        aggregate = scores.aggregate(entry, terms.metric)
        result = _meets_minimum(aggregate, least, terms)
        message = "no score"
        if aggregate.mean is not None:
            bounds = aggregate.ci95
            shown = "n = 1" if bounds is None else f"95 % CI {scale.plain(bounds[0])} to {scale.plain(bounds[1])}"
            shown = "on these cases" if terms.these_cases else shown
            message = f"{scale.plain(aggregate.mean)} ({shown}), at least {scale.plain(least)}"
        if result == "passed" and entry.failures:
            with_failures = scores.aggregate(entry, terms.metric, failures="worst")
            if _meets_minimum(with_failures, least, terms) != "passed":
                result = "cannot tell"
                message += (
                    f"; with {entry.failures} failed trials counted as the worst score, "
                    f"it is {scale.plain(with_failures.mean)}"
                )
        yield GateCheck(
            name="minimum",
            arm=entry.arm.name,
            result=result,
            message=message,
            value=aggregate.mean,
            interval=None if terms.these_cases else aggregate.ci95,
            limit=least,
        )


def _meets_minimum(aggregate: Aggregate, least: float, terms: Terms) -> Result:
    if aggregate.mean is None:
        return "cannot tell"
    if terms.these_cases:
        return "passed" if aggregate.mean >= least - _ROUNDING else "failed"
    if aggregate.ci95 is None:
        return "cannot tell"
    low, high = aggregate.ci95
    return "passed" if low >= least - _ROUNDING else "failed" if high < least - _ROUNDING else "cannot tell"


def _regression(
    scores: ScoreTable, own: Sequence[ArmScores], against: Source, terms: Terms
) -> tuple[list[GateCheck], list[str]]:
    margin = terms.margin if terms.margin is not None else 0.0 if terms.these_cases else DEFAULT_MARGIN
    if margin <= 0 and not terms.these_cases:
        raise FairtrialError("without a margin, a loss can never be ruled out: give a --margin above 0")
    before = {one.arm.name: one for one in scores.arms if one.source is against}
    names = {one.arm.name for one in own}
    checks = [_undecided(one.arm.name, f"{against.label} has no such arm") for one in own if one.arm.name not in before]
    if not terms.arms:
        checks += [
            _undecided(name, f"{against.label} has this arm, but this run does not")
            for name in before
            if name not in names
        ]
    pairs = [(one, before[one.arm.name]) for one in own if one.arm.name in before]
    usable = [pair for pair in pairs if all(one.values.get(terms.metric) for one in pair)]
    checks += [
        _undecided(one.arm.name, "one of the two runs has no score for it")
        for one, other in pairs
        if (one, other) not in usable
    ]
    if not usable:
        return checks, []
    compared = compare(scores, usable, metric=terms.metric, margin=margin or None, largest=terms.largest)
    for (after, earlier), pair in zip(usable, compared.pairs, strict=True):
        result, message = _regression_result(pair, margin, terms)
        if result == "passed" and (doubt := _doubt_about_pass(after, earlier, pair, margin, terms)):
            result, message = "cannot tell", f"{message}; {doubt}"
        checks.append(
            GateCheck(
                name="regression",
                arm=after.arm.name,
                result=result,
                message=f"{message} against {against.label}",
                value=pair.difference,
                interval=None if terms.these_cases else pair.ci95,
                limit=-margin,
            )
        )
    return checks, compared.notes


def _undecided(arm: str, message: str) -> GateCheck:
    return GateCheck(name="regression", arm=arm, result="cannot tell", message=message)


def _doubt_about_pass(after: ArmScores, before: ArmScores, pair: Comparison, margin: float, terms: Terms) -> str:
    """Say why a regression may have gone unnoticed: too few common cases, or failed trials instead of wrong answers."""
    cases = _expected_cases(after)
    if pair.count < terms.min_coverage * min(cases, _expected_cases(before)) * (1 - _ROUNDING):
        return f"only {pair.count} of {cases} cases can be compared"
    if pair.failures is None:
        return ""
    worst, scale = pair.failures.against_a, Scale(terms.metric)
    if terms.these_cases:
        kept = _gain(pair, worst.difference) >= -margin - _ROUNDING
    else:
        kept = _smallest_gain(pair, worst.ci95) > -margin
    shown = f"{scale.signed(worst.difference)}, 95 % CI {scale.words(worst.ci95, margin)}"
    return "" if kept else f"if every failed trial counted against it, it would be {shown}"


def _expected_cases(arm: ArmScores) -> int:
    """Return how many cases the arm should have answered; for a run that stopped early, those that it reached."""
    if arm.stop is None:
        return int(np.count_nonzero(arm.places >= 0))
    return int(np.count_nonzero(arm.values[SCORE].counts + arm.failed))


def _gain(pair: Comparison, difference: float | None) -> float:
    """Return a difference as a gain, whether higher or lower is better."""
    value = difference or 0.0
    return -value if _less_is_better(pair) else value


def _smallest_gain(pair: Comparison, interval: tuple[float, float] | None) -> float:
    """Return the smallest gain in an interval."""
    return -math.inf if interval is None else min(_gain(pair, bound) for bound in interval)


def _regression_result(pair: Comparison, margin: float, terms: Terms) -> tuple[Result, str]:
    """Return result and message.

    The result is `passed` if the interval rules out a loss beyond the margin, and `failed` if the interval shows a loss
    and does not rule that out.
    """
    scale = Scale(terms.metric)
    if pair.difference is None:
        return "cannot tell", "no cases in common"
    shown = f"{scale.signed(pair.difference)}{scale.unit}"
    allowed = f"margin {scale.plain(margin)}"
    if terms.these_cases:
        kept = _gain(pair, pair.difference) >= -margin - _ROUNDING
        return ("passed" if kept else "failed"), f"{shown} on {pair.count} cases, {allowed}"
    message = f"{shown} (95 % CI {scale.words(pair.ci95, margin)}), {allowed}"
    if _smallest_gain(pair, pair.ci95) > -margin:
        return "passed", message
    if pair.verdict == "worse":
        return "failed", message
    return "cannot tell", f"{message}{_cases_hint(pair, margin)}"


def _cases_hint(pair: Comparison, margin: float) -> str:
    """Say how many cases would be enough, if there is no true difference and cases keep varying as they do."""
    if not pair.std_err or pair.count < 2:
        return ""
    spread = pair.std_err * math.sqrt(pair.count)
    if pair.scale != (0.0, 1.0):
        return ""
    cases = cases_to_pass(spread, margin, alpha=1 - pair.level, pilot=max(2, pair.units))
    return f"; about {cases:,} cases would be enough to tell" if cases > pair.count else ""


def _less_is_better(pair: Comparison) -> bool:
    worst, best = pair.scale
    return best is not None and (worst is None or best < worst)


def gate_line(check: GateCheck) -> str:
    """Format one check as one line."""
    return f"{check.result}: {check.name} of {check.arm}: {check.message}"
