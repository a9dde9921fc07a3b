"""A gate for continuous integration: passed, failed, or nobody can tell yet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from fairtrial.analyse.compare import compare
from fairtrial.analyse.comparison import Comparison, read_verdict
from fairtrial.analyse.evidence import Evidence
from fairtrial.analyse.gate_cases import case_checks, chosen_rows, flaky_cases, is_unchanged
from fairtrial.analyse.gate_claims import METHOD, block_levels, claims, decide
from fairtrial.analyse.gate_result import Gate, GateCheck, Result, Settle, Unsure, gate_line
from fairtrial.analyse.gate_settle import settle_words, what_settles
from fairtrial.analyse.gate_terms import DEFAULT_MARGIN, ROUNDING, Terms, check_terms, gate_spec, terms_of
from fairtrial.analyse.score_table import SCORE, ArmScores, RunSource, ScoreTable, check_metric, pick, read_scores
from fairtrial.core.errors import FairtrialError
from fairtrial.core.formatting import Scale
from fairtrial.core.gate import GateSpec
from fairtrial.stats import Aggregate

__all__ = ["Gate", "GateCheck", "Result", "Terms", "Unsure", "gate", "gate_line", "gate_spec", "terms_of"]


_MOST_FLAKY = 200  # cases to list


def gate(
    source: RunSource, against: RunSource | None, terms: Terms, *, baseline: str = "", first: bool = False
) -> Gate:
    """Check a run or series against its terms and, if given, against an earlier one.

    `baseline` says how the earlier one was found, or why there is none though one was asked for: then nobody can tell.
    Nor can the gate where the terms need one and none was named, unless this is the `first`, which becomes one.
    """
    check_terms(terms, against)
    if against is not None and {run.id for run in source.runs} & {run.id for run in against.runs}:
        raise FairtrialError("a run cannot be gated against itself: name an earlier run, or give that run a tag")
    scores = read_scores([source] if against is None else [source, against])
    own = [one for one in scores.arms if one.source is source]
    check_metric(own, terms.metric)
    if terms.arms:
        own = [pick(scores._replace(arms=tuple(own)), name) for name in terms.arms]
    left_out = chosen_rows(scores, terms.rules.quarantine, "quarantine")
    scores.facts.leave_out(left_out)
    before = [one for one in scores.arms if one.source is against]
    flaky = list(flaky_cases(scores, before or own, terms.rules.pass_score / 100, left_out))
    checks = [*_coverage(own, terms), *case_checks(scores, own, terms.rules, flaky if before else (), left_out)]
    if terms.min_score is not None:
        checks += _minimum(scores, own, terms, terms.min_score)
    regression = _Regression([], [], "", [])
    if against is not None:
        regression = _regression(scores, own, against, terms)
    elif baseline := baseline or ("" if first else _unchecked(terms)):
        checks.append(_undecided("all arms", baseline))
    return Gate(
        run_ids=[run.id for run in source.runs],
        against=[run.id for run in against.runs] if against else [],
        checks=[*checks, *regression.checks],
        notes=[*regression.notes, *_changed_terms(source, against)],
        unsure=terms.unsure,
        flaky=flaky[:_MOST_FLAKY],
        flaky_count=len(flaky),
        quarantined=[scores.facts[row].id for row in left_out.tolist()],
        baseline=baseline,
        method=regression.method,
        settle=regression.settle,
    )


def _unchecked(terms: Terms) -> str:
    """Say what a gate for which no baseline was named leaves open; empty if it checked all that it demands."""
    if needed := terms.compared:
        reason = f"{' and '.join(needed)} cannot be checked without one"
    elif terms.min_score is None and terms.min_coverage is None and not terms.rules.about_cases:
        reason = "only coverage was checked, and no minimum"
    else:
        return ""
    return f"no baseline: {reason}. Say which run to compare with: --against auto, branch:main or a run"


def _changed_terms(source: RunSource, against: RunSource | None) -> list[str]:
    """Say if the gate itself was changed since the baseline: who loosens it should be seen doing so."""
    if against is None:
        return []
    new, old = (gate_spec(one.runs[0]) or GateSpec() for one in (source, against))
    changed = [name for name in GateSpec.__struct_fields__ if getattr(new, name) != getattr(old, name)]
    return [f"The gate itself was changed since {against.label}: {', '.join(changed)}."] if changed else []


def _coverage(own: Sequence[ArmScores], terms: Terms) -> Iterator[GateCheck]:
    for entry in own:
        share = entry.scored / entry.planned if entry.planned else 0.0
        yield GateCheck(
            name="coverage",
            arm=entry.arm.name,
            result="passed" if share >= terms.coverage - ROUNDING else "failed",
            message=f"{entry.scored} of {entry.planned} trials have a score (at least {100 * terms.coverage:g} %)",
            value=share,
            limit=terms.coverage,
        )


def _minimum(scores: ScoreTable, own: Sequence[ArmScores], terms: Terms, least: float) -> Iterator[GateCheck]:
    """Check the minimum; it is met only if it is met without failed trials and with them counted as the worst score."""
    scale = Scale(terms.metric)
    if own and own[0].sign(terms.metric) < 0:
        raise FairtrialError(f"lower is better for `{terms.metric}`: it cannot have a minimum; use --against")
    for entry in own:
        aggregate = scores.aggregate(entry, terms.metric, alpha=terms.level)
        result = _meets_minimum(aggregate, least, terms)
        message = "no score"
        if aggregate.mean is not None:
            bounds = aggregate.ci95
            shown = (
                "n = 1" if bounds is None else f"{terms.interval} {scale.plain(bounds[0])} to {scale.plain(bounds[1])}"
            )
            shown = "on these cases" if terms.these_cases else shown
            message = f"{scale.plain(aggregate.mean)} ({shown}), at least {scale.plain(least)}"
        if result == "passed" and entry.failures:
            with_failures = scores.aggregate(entry, terms.metric, failures="worst", alpha=terms.level)
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
            metric=terms.metric,
        )


def _meets_minimum(aggregate: Aggregate, least: float, terms: Terms) -> Result:
    if aggregate.mean is None:
        return "cannot tell"
    if terms.these_cases:
        return "passed" if aggregate.mean >= least - ROUNDING else "failed"
    if aggregate.ci95 is None:
        return "cannot tell"
    low, high = aggregate.ci95
    return "passed" if low >= least - ROUNDING else "failed" if high < least - ROUNDING else "cannot tell"


class _Regression(NamedTuple):
    """What came of the comparison with the baseline."""

    checks: list[GateCheck]
    notes: list[str]
    method: str
    settle: list[Settle]


def _regression(scores: ScoreTable, own: Sequence[ArmScores], against: RunSource, terms: Terms) -> _Regression:
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
        return _Regression(checks, [], "", [])
    compared = compare(
        scores, usable, metric=terms.metric, margin=margin or None, largest=terms.largest, others=(), detailed=0,
        alpha=terms.level,
    )  # fmt: skip
    unchanged = [is_unchanged(*pair) for pair in usable]
    changed = [pair for pair, same in zip(usable, unchanged, strict=True) if not same]
    found = [] if terms.these_cases else list(claims(scores, changed, terms.rules))
    losses = [_p_loss(pair) for pair in compared.pairs]
    levels = block_levels(found, losses, terms.level) if found else [1.0] * len(losses)
    settle: list[Settle] = []
    for (after, earlier), plain, level, same in zip(usable, compared.pairs, levels, unchanged, strict=True):
        if same:
            checks.append(_unchanged_check(after, plain, margin))
            continue
        pair = _at_level(scores, after, earlier, plain, level, terms) if level < 1 - plain.level else plain
        result, message = _regression_result(pair, margin, terms)
        message += f" against {against.label}"
        if result == "passed" and (doubt := _doubt_about_pass(scores, after, earlier, pair, margin, terms)):
            result, message = "cannot tell", f"{message}; {doubt}"
        if result == "cannot tell" and (hint := what_settles(scores, after, earlier, pair, margin)):
            settle.append(hint)
            message += f"; {settle_words(hint, pair.count)}"
        checks.append(
            GateCheck(
                name="regression",
                arm=after.arm.name,
                result=result,
                message=message,
                value=pair.difference,
                interval=None if terms.these_cases else pair.ci95,
                limit=margin if _less_is_better(pair) else -margin,
                metric=terms.metric,
            )
        )
    checks += decide(found, losses, terms.level, terms.interval)
    method = METHOD.format(checks=len(found) + len(losses), interval=terms.interval) if found else ""
    notes = [*compared.notes]
    if terms.these_cases and (terms.rules.categories or terms.rules.guards):
        notes.append("Categories and guards were not checked: --these-cases compares means only.")
    return _Regression(checks, notes, method, settle)


def _unchanged_check(after: ArmScores, pair: Comparison, margin: float) -> GateCheck:
    return GateCheck(
        name="regression",
        arm=after.arm.name,
        result="passed",
        message="unchanged: every answer was reused, because nothing that it depends on has changed",
        value=0.0,
        limit=margin if _less_is_better(pair) else -margin,
        metric=pair.metric,
    )


def _p_loss(pair: Comparison) -> float:
    return pair.p_value if pair.p_value is not None and _gain(pair, pair.difference) < 0 else 1.0


def _at_level(
    scores: ScoreTable, after: ArmScores, before: ArmScores, pair: Comparison, level: float, terms: Terms
) -> Comparison:
    """Return the pair with the limit that decides about blocking at another level; the one for passing stays."""
    evidence = Evidence(scores, after, before, terms.metric, margin=terms.margin, largest=terms.largest)
    wide = evidence.estimate.interval(level)
    if wide is None or pair.ci95 is None or evidence.anytime:
        return pair
    bounds = (wide[0], pair.ci95[1]) if _less_is_better(pair) else (pair.ci95[0], wide[1])
    verdict = pair.verdict if pair.verdict != "worse" else read_verdict(bounds, evidence.sign)
    return msgspec.structs.replace(pair, ci95=bounds, verdict=verdict)


def _undecided(arm: str, message: str) -> GateCheck:
    return GateCheck(name="regression", arm=arm, result="cannot tell", message=message)


def _doubt_about_pass(
    scores: ScoreTable, after: ArmScores, before: ArmScores, pair: Comparison, margin: float, terms: Terms
) -> str:
    """Say why a regression may have gone unnoticed: too few common cases, or failed trials instead of wrong answers."""
    cases = _expected_cases(scores, after)
    if pair.count < terms.coverage * min(cases, _expected_cases(scores, before)) * (1 - ROUNDING):
        return f"only {pair.count} of {cases} cases can be compared"
    if pair.failures is None:
        return ""
    worst, scale = pair.failures.against_a, Scale(terms.metric)
    if terms.these_cases:
        kept = _gain(pair, worst.difference) >= -margin - ROUNDING
    else:
        kept = _smallest_gain(pair, worst.ci95) > -margin
    shown = f"{scale.signed(worst.difference)}, {terms.interval} {scale.words(worst.ci95, margin)}"
    return "" if kept else f"if every failed trial counted against it, it would be {shown}"


def _expected_cases(scores: ScoreTable, arm: ArmScores) -> int:
    """Return how many cases that count the arm should have answered; for a run that stopped early, those it reached."""
    asked = arm.places >= 0 if arm.stop is None else arm.values[SCORE].counts + arm.failed > 0
    return int(np.count_nonzero(asked & (scores.weights > 0)))


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
        kept = _gain(pair, pair.difference) >= -margin - ROUNDING
        return ("passed" if kept else "failed"), f"{shown} on {pair.count} cases, {allowed}"
    message = f"{shown} ({terms.interval} {scale.words(pair.ci95, margin)}), {allowed}"
    if _smallest_gain(pair, pair.ci95) > -margin:
        return "passed", message
    if pair.verdict == "worse":
        return "failed", message
    return "cannot tell", message


def _less_is_better(pair: Comparison) -> bool:
    worst, best = pair.scale
    return best is not None and (worst is None or best < worst)
