"""A gate for continuous integration: passed, failed, or nobody can tell yet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from fairtrial.analyse.caveats import Caveat, GateChanged, PlainCaveat
from fairtrial.analyse.compare import compare
from fairtrial.analyse.comparison import Comparison, read_verdict
from fairtrial.analyse.evidence import Evidence
from fairtrial.analyse.gate_cases import case_checks, chosen_rows, flaky_cases, is_unchanged
from fairtrial.analyse.gate_claims import block_levels, claims, decide
from fairtrial.analyse.gate_reasons import (
    CoverageReason,
    DifferenceReason,
    MinimumReason,
    NoBaseline,
    PlainReason,
    Reason,
    Settle,
    SeveralChecks,
    StatedReason,
)
from fairtrial.analyse.gate_result import Gate, GateCheck, Result, Unsure
from fairtrial.analyse.gate_settle import what_settles
from fairtrial.analyse.gate_terms import DEFAULT_MARGIN, ROUNDING, Terms, check_terms, gate_spec, terms_of
from fairtrial.analyse.score_table import SCORE, ArmScores, RunSource, ScoreTable, check_metric, pick, read_scores
from fairtrial.core.errors import FairtrialError
from fairtrial.core.gate import GateSpec
from fairtrial.stats import Aggregate

__all__ = ["Gate", "GateCheck", "Result", "Terms", "Unsure", "gate", "gate_spec", "terms_of"]


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
    regression = _Regression([], [], None, [])
    if against is not None:
        regression = _regression(scores, own, against, terms)
    origin = StatedReason(text=baseline) if baseline else None if first or against is not None else _unchecked(terms)
    if against is None and origin is not None:
        checks.append(_undecided("all arms", origin))
    return Gate(
        run_ids=[run.id for run in source.runs],
        against=[run.id for run in against.runs] if against else [],
        checks=[*checks, *regression.checks],
        caveats=[*regression.caveats, *_changed_terms(source, against)],
        unsure=terms.unsure,
        flaky=flaky[:_MOST_FLAKY],
        flaky_count=len(flaky),
        quarantined=[scores.facts[row].id for row in left_out.tolist()],
        origin=origin,
        adjusted=regression.adjusted,
        settle=regression.settle,
    )


def _unchecked(terms: Terms) -> NoBaseline | None:
    """Return what a gate for which no baseline was named leaves open; None if it checked all that it demands."""
    unlimited = terms.min_score is None and terms.min_coverage is None and not terms.rules.about_cases
    return NoBaseline(needed=terms.compared) if terms.compared or unlimited else None


def _changed_terms(source: RunSource, against: RunSource | None) -> list[Caveat]:
    """Return whether the gate itself was changed since the baseline: who loosens it should be seen doing so."""
    if against is None:
        return []
    new, old = (gate_spec(one.runs[0]) or GateSpec() for one in (source, against))
    changed = [name for name in GateSpec.__struct_fields__ if getattr(new, name) != getattr(old, name)]
    return [GateChanged(baseline=against.label, demands=changed)] if changed else []


def _coverage(own: Sequence[ArmScores], terms: Terms) -> Iterator[GateCheck]:
    for entry in own:
        share = entry.scored / entry.planned if entry.planned else 0.0
        yield GateCheck(
            name="coverage",
            arm=entry.arm.name,
            result="passed" if share >= terms.coverage - ROUNDING else "failed",
            reason=CoverageReason(scored=entry.scored, planned=entry.planned, least=terms.coverage),
            value=share,
            limit=terms.coverage,
        )


def _minimum(scores: ScoreTable, own: Sequence[ArmScores], terms: Terms, least: float) -> Iterator[GateCheck]:
    """Check the minimum; it is met only if it is met without failed trials and with them counted as the worst score."""
    if own and own[0].sign(terms.metric) < 0:
        raise FairtrialError(f"lower is better for `{terms.metric}`: it cannot have a minimum; use --against")
    for entry in own:
        aggregate = scores.aggregate(entry, terms.metric, alpha=terms.level, one_sided=True)
        result = _meets_minimum(aggregate, least, terms)
        reason = MinimumReason(
            mean=aggregate.mean,
            bounds=aggregate.ci95,
            least=least,
            metric=terms.metric,
            level=terms.level,
            these_cases=terms.these_cases,
        )
        if result == "passed" and entry.failures:
            with_failures = scores.aggregate(entry, terms.metric, failures="worst", alpha=terms.level, one_sided=True)
            if _meets_minimum(with_failures, least, terms) != "passed":
                result = "cannot tell"
                reason = replace(reason, failures=entry.failures, with_failures=with_failures.mean)
        yield GateCheck(
            name="minimum",
            arm=entry.arm.name,
            result=result,
            reason=reason,
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
    caveats: list[Caveat]
    adjusted: SeveralChecks | None
    settle: list[Settle]


def _regression(scores: ScoreTable, own: Sequence[ArmScores], against: RunSource, terms: Terms) -> _Regression:
    margin = terms.margin if terms.margin is not None else 0.0 if terms.these_cases else DEFAULT_MARGIN
    if margin <= 0 and not terms.these_cases:
        raise FairtrialError("without a margin, a loss can never be ruled out: give a --margin above 0")
    before = {one.arm.name: one for one in scores.arms if one.source is against}
    names = {one.arm.name for one in own}
    label = against.label
    new, gone = PlainReason(what="new_arm", baseline=label), PlainReason(what="arm_gone", baseline=label)
    checks = [_undecided(one.arm.name, new) for one in own if one.arm.name not in before]
    if not terms.arms:
        checks += [_undecided(name, gone) for name in before if name not in names]
    pairs = [(one, before[one.arm.name]) for one in own if one.arm.name in before]
    usable = [pair for pair in pairs if all(one.values.get(terms.metric) for one in pair)]
    checks += [
        _undecided(one.arm.name, PlainReason(what="unscored")) for one, other in pairs if (one, other) not in usable
    ]
    if not usable:
        return _Regression(checks, [], None, [])
    compared = compare(
        scores, usable, metric=terms.metric, margin=margin or None, largest=terms.largest, others=(), detailed=0,
        alpha=terms.level, one_sided=True,
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
        result = _regression_result(pair, margin, terms)
        reason: PlainReason | DifferenceReason = PlainReason(what="nothing_common", baseline=label)
        if pair.difference is not None:
            reason = _difference(pair, pair.difference, margin, terms, label)
            if result == "passed":
                doubted = _with_doubt(reason, scores, after, earlier, pair, margin, terms)
                result, reason = ("passed" if doubted is reason else "cannot tell"), doubted
            if result == "cannot tell" and (hint := what_settles(scores, after, earlier, pair, margin)):
                settle.append(hint)
                reason = replace(reason, settle=hint)
        checks.append(
            GateCheck(
                name="regression",
                arm=after.arm.name,
                result=result,
                reason=reason,
                value=pair.difference,
                interval=None if terms.these_cases else pair.ci95,
                limit=margin if _less_is_better(pair) else -margin,
                metric=terms.metric,
            )
        )
    checks += decide(found, losses, terms.level)
    adjusted = SeveralChecks(checks=len(found) + len(losses), level=terms.level) if found else None
    caveats = [*compared.caveats]
    if terms.these_cases and (terms.rules.categories or terms.rules.guards):
        caveats.append(PlainCaveat(what="means_only"))
    return _Regression(checks, caveats, adjusted, settle)


def _unchanged_check(after: ArmScores, pair: Comparison, margin: float) -> GateCheck:
    return GateCheck(
        name="regression",
        arm=after.arm.name,
        result="passed",
        reason=PlainReason(what="unchanged"),
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
    evidence = Evidence(scores, after, before, terms.metric, margin=terms.margin, largest=terms.largest, one_sided=True)
    wide = evidence.claimed.interval(level)
    if wide is None or pair.ci95 is None or evidence.anytime:
        return pair
    bounds = (wide[0], pair.ci95[1]) if _less_is_better(pair) else (pair.ci95[0], wide[1])
    verdict = pair.verdict if pair.verdict != "worse" else read_verdict(bounds, evidence.sign)
    return replace(pair, ci95=bounds, verdict=verdict)


def _undecided(arm: str, reason: Reason) -> GateCheck:
    return GateCheck(name="regression", arm=arm, result="cannot tell", reason=reason)


def _difference(pair: Comparison, difference: float, margin: float, terms: Terms, baseline: str) -> DifferenceReason:
    return DifferenceReason(
        difference=difference,
        bounds=pair.ci95,
        cases=pair.count,
        margin=margin,
        metric=terms.metric,
        level=terms.level,
        these_cases=terms.these_cases,
        baseline=baseline,
    )


def _with_doubt(
    reason: DifferenceReason,
    scores: ScoreTable,
    after: ArmScores,
    before: ArmScores,
    pair: Comparison,
    margin: float,
    terms: Terms,
) -> DifferenceReason:
    """Add why a loss may have gone unnoticed: too few common cases, or failed trials instead of wrong answers."""
    cases = _expected_cases(scores, after)
    if pair.count < terms.coverage * min(cases, _expected_cases(scores, before)) * (1 - ROUNDING):
        return replace(reason, expected_cases=cases)
    if pair.failures is None:
        return reason
    worst = pair.failures.against_a
    if terms.these_cases:
        kept = _gain(pair, worst.difference) >= -margin - ROUNDING
    else:
        kept = _smallest_gain(pair, worst.ci95) > -margin
    return reason if kept else replace(reason, worst=worst)


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


def _regression_result(pair: Comparison, margin: float, terms: Terms) -> Result:
    """Return `passed` if the interval rules out a loss beyond the margin, `failed` if it shows one and does not."""
    if pair.difference is None:
        return "cannot tell"
    if terms.these_cases:
        return "passed" if _gain(pair, pair.difference) >= -margin - ROUNDING else "failed"
    if _smallest_gain(pair, pair.ci95) > -margin:
        return "passed"
    return "failed" if pair.verdict == "worse" else "cannot tell"


def _less_is_better(pair: Comparison) -> bool:
    worst, best = pair.scale
    return best is not None and (worst is None or best < worst)
