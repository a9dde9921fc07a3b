"""A gate for continuous integration: passed, failed, or nobody can tell yet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from fairtrial.analyse.compare import compare
from fairtrial.analyse.comparison import Comparison
from fairtrial.analyse.planning import cases_to_pass
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable, Source, check_metric, pick, read_scores
from fairtrial.analyse.wording.comparisons import Scale
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import Aggregate
from fairtrial.stats.units import Interval, Measured

Result = Literal["passed", "failed", "cannot tell"]
Unsure = Literal["pass", "fail", "101"]  # how a gate ends when nobody can tell
EXIT_CODES: dict[Result, int] = {"passed": 0, "failed": 100, "cannot tell": 101}
BEARABLE = 0.05  # the loss that nobody minds, unless they say so
_ROUNDING = 1e-9


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What is demanded. Scores are 0–1; `these_cases` asks about the very cases, not about cases like them."""

    min_score: float | None = None
    margin: float | None = None
    min_coverage: float = 0.95
    metric: str = SCORE
    arms: tuple[str, ...] = ()
    these_cases: bool = False
    largest: float | None = None  # that a case can differ by, where it is less than the scale allows
    unsure: Unsure = "101"


class GateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One demand on one arm, in words and in numbers (scores 0–1)."""

    name: str
    arm: str
    result: Result
    message: str
    value: Measured | None = None
    interval: Interval | None = None
    limit: Measured | None = None


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Every check, what they come to, and what should be known before that is believed."""

    run_ids: list[str]
    against: list[str]
    checks: list[GateCheck]
    notes: list[str] = []
    unsure: Unsure = "101"

    @property
    def result(self) -> Result:
        """One failure fails it; else one doubt leaves it open."""
        results = {check.result for check in self.checks}
        return "failed" if "failed" in results else "cannot tell" if "cannot tell" in results else "passed"

    @property
    def exit_code(self) -> int:
        """0, 100 or 101; for what nobody can tell, as `unsure` says."""
        if self.result == "cannot tell":
            return {"pass": 0, "fail": 100, "101": 101}[self.unsure]
        return EXIT_CODES[self.result]


def gate(source: Source, against: Source | None, terms: Terms) -> Gate:
    """Hold a run or series to its terms, and against another one."""
    _check_terms(terms, against)
    if against is not None and {run.id for run in source.runs} & {run.id for run in against.runs}:
        raise FairtrialError("a run cannot be held against itself: name an earlier one, or give it a tag")
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
        found, notes = _regression(scores, own, against, terms)
        checks += found
    if terms.min_score is None and against is None:
        notes = ["Only coverage was asked for: --min-score and --against ask for more."]
    return Gate(
        run_ids=[run.id for run in source.runs],
        against=[run.id for run in against.runs] if against else [],
        checks=checks,
        notes=notes,
        unsure=terms.unsure,
    )


def _check_terms(terms: Terms, against: Source | None) -> None:
    """Numbers that nobody can have meant."""
    if terms.metric:
        if against is not None and terms.margin is None:
            raise FairtrialError(f"which loss of `{terms.metric}` is bearable? Give a --margin on its own scale")
        return
    least = terms.min_score
    if least is not None and 0 < least <= 0.01:
        raise FairtrialError(
            f"scores are 0 to 100: a minimum of {100 * least:g} asks for nothing; was {1e4 * least:g} meant?"
        )
    if least is not None and not 0 <= least <= 1:
        raise FairtrialError(f"scores are 0 to 100: a minimum of {100 * least:g} cannot be met, or means nothing")
    if terms.margin is not None and terms.margin > 1:
        raise FairtrialError(f"scores are 0 to 100: a margin of {100 * terms.margin:g} points allows everything")


def _coverage(own: Sequence[ArmScores], terms: Terms) -> Iterator[GateCheck]:
    for one in own:
        share = one.scored / one.planned if one.planned else 0.0
        yield GateCheck(
            name="coverage",
            arm=one.arm.name,
            result="passed" if share >= terms.min_coverage - _ROUNDING else "failed",
            message=f"{one.scored} of {one.planned} trials have a score (at least {100 * terms.min_coverage:g} %)",
            value=share,
            limit=terms.min_coverage,
        )


def _minimum(scores: ScoreTable, own: Sequence[ArmScores], terms: Terms, least: float) -> Iterator[GateCheck]:
    """Met only if it is met with failures left out, and with failures counted as the worst."""
    scale = Scale(terms.metric)
    if own and own[0].sign(terms.metric) < 0:
        raise FairtrialError(f"less of `{terms.metric}` is better: a minimum cannot be asked of it; --against can")
    for one in own:
        found = scores.aggregate(one, terms.metric)
        result = _above(found, least, terms)
        message = "no score"
        if found.mean is not None:
            bounds = found.ci95
            shown = "n = 1" if bounds is None else f"95% CI [{scale.plain(bounds[0])}, {scale.plain(bounds[1])}]"
            shown = "on these cases" if terms.these_cases else shown
            message = f"{scale.plain(found.mean)} ({shown}), at least {scale.plain(least)}"
        if result == "passed" and one.failed:
            strict = scores.aggregate(one, terms.metric, failures="worst")
            if _above(strict, least, terms) != "passed":
                result = "cannot tell"
                message += (
                    f"; with {sum(one.failed.values())} failures counted as the worst it is {scale.plain(strict.mean)}"
                )
        yield GateCheck(
            name="minimum",
            arm=one.arm.name,
            result=result,
            message=message,
            value=found.mean,
            interval=None if terms.these_cases else found.ci95,
            limit=least,
        )


def _above(found: Aggregate, least: float, terms: Terms) -> Result:
    if found.mean is None:
        return "cannot tell"
    if terms.these_cases:
        return "passed" if found.mean >= least - _ROUNDING else "failed"
    if found.ci95 is None:
        return "cannot tell"
    low, high = found.ci95
    return "passed" if low >= least - _ROUNDING else "failed" if high < least - _ROUNDING else "cannot tell"


def _regression(
    scores: ScoreTable, own: Sequence[ArmScores], against: Source, terms: Terms
) -> tuple[list[GateCheck], list[str]]:
    margin = terms.margin if terms.margin is not None else 0.0 if terms.these_cases else BEARABLE
    if margin <= 0 and not terms.these_cases:
        raise FairtrialError("a loss of nothing at all can never be ruled out: give a --margin above 0")
    before = {one.arm.name: one for one in scores.arms if one.source is against}
    names = {one.arm.name for one in own}
    checks = [_unknown(one.arm.name, f"{against.label} has no such arm") for one in own if one.arm.name not in before]
    if not terms.arms:
        checks += [
            _unknown(name, f"{against.label} has it, and this run does not") for name in before if name not in names
        ]
    pairs = [(one, before[one.arm.name]) for one in own if one.arm.name in before]
    usable = [pair for pair in pairs if all(one.values.get(terms.metric) for one in pair)]
    checks += [
        _unknown(one.arm.name, "no score on one of the two sides") for one, other in pairs if (one, other) not in usable
    ]
    if not usable:
        return checks, []
    compared = compare(scores, usable, metric=terms.metric, margin=margin or None, largest=terms.largest)
    for (one, other), pair in zip(usable, compared.pairs, strict=True):
        result, message = _held(pair, margin, terms)
        if result == "passed" and (trouble := _waved_through(one, other, pair, margin, terms)):
            result, message = "cannot tell", f"{message}; {trouble}"
        checks.append(
            GateCheck(
                name="regression",
                arm=one.arm.name,
                result=result,
                message=f"{message} against {against.label}",
                value=pair.difference,
                interval=None if terms.these_cases else pair.ci95,
                limit=-margin,
            )
        )
    return checks, compared.notes


def _unknown(arm: str, message: str) -> GateCheck:
    return GateCheck(name="regression", arm=arm, result="cannot tell", message=message)


def _waved_through(one: ArmScores, other: ArmScores, pair: Comparison, margin: float, terms: Terms) -> str:
    """Why a regression may have passed unseen: hardly a case in common, or failures instead of wrong answers."""
    cases = _asked(one)
    if pair.count < terms.min_coverage * min(cases, _asked(other)) * (1 - _ROUNDING):
        return f"only {pair.count} of {cases} cases can be compared"
    if pair.failures is None:
        return ""
    worst, scale = pair.failures.against_a, Scale(terms.metric)
    if terms.these_cases:
        kept = _gain(pair, worst.difference) >= -margin - _ROUNDING
    else:
        kept = _least(pair, worst.ci95) > -margin
    shown = f"{scale.signed(worst.difference)} {scale.interval(worst.ci95, margin)}"
    return "" if kept else f"if every failure spoke against it, it would be {shown}"


def _asked(one: ArmScores) -> int:
    """How many cases it should have an answer to; a run that stopped early, those that it asked."""
    if one.stop is None:
        return len(one.places)
    return len(one.values[SCORE].keys() | one.failed.keys())


def _gain(pair: Comparison, difference: float | None) -> float:
    """A difference as a gain, whichever way is better."""
    value = difference or 0.0
    return -value if _less_is_better(pair) else value


def _least(pair: Comparison, interval: tuple[float, float] | None) -> float:
    """The smallest gain that an interval leaves open."""
    return -math.inf if interval is None else min(_gain(pair, bound) for bound in interval)


def _held(pair: Comparison, margin: float, terms: Terms) -> tuple[Result, str]:
    """Passed where the interval rules out a loss beyond the margin; failed where it shows a loss, and does not."""
    scale = Scale(terms.metric)
    if pair.difference is None:
        return "cannot tell", "no case in common"
    shown = f"{scale.signed(pair.difference)}{scale.unit}"
    allowed = f"margin {scale.plain(margin)}"
    if terms.these_cases:
        kept = _gain(pair, pair.difference) >= -margin - _ROUNDING
        return ("passed" if kept else "failed"), f"{shown} on {pair.count} cases, {allowed}"
    message = f"{shown} (95% CI {scale.interval(pair.ci95, margin)}), {allowed}"
    if _least(pair, pair.ci95) > -margin:
        return "passed", message
    if pair.verdict == "worse":
        return "failed", message
    return "cannot tell", f"{message}{_enough(pair, margin)}"


def _enough(pair: Comparison, margin: float) -> str:
    """How many cases would tell, if nothing changed and cases went on to differ as they do."""
    if not pair.std_err or pair.count < 2:
        return ""
    spread = pair.std_err * math.sqrt(pair.count)
    if pair.scale != (0.0, 1.0):
        return ""
    cases = cases_to_pass(spread, margin, alpha=1 - pair.level, pilot=max(2, pair.units))
    return f"; about {cases:,} cases would tell" if cases > pair.count else ""


def _less_is_better(pair: Comparison) -> bool:
    worst, best = pair.scale
    return best is not None and (worst is None or best < worst)


def gate_line(check: GateCheck) -> str:
    """One check in a line."""
    return f"{check.result}: {check.name} of {check.arm}: {check.message}"
