"""Comparisons in words: the same ones in the terminal, in Markdown and in pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.stats.planning import fewest_cases

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Comparison, Comparisons, Differs, Group, Robustness

ALPHA = 0.05


class Scale:
    """How the numbers of a comparison are written: scores in points of 100, metrics on their own scale."""

    def __init__(self, metric: str) -> None:
        self.times, self.digits = (1, 3) if metric else (100, 1)
        self.unit = f" in {metric}" if metric else " points"

    def plain(self, value: float | None) -> str:
        """A number without a sign."""
        return "–" if value is None else self._written(value, "")

    def signed(self, value: float | None) -> str:
        """A difference."""
        return "–" if value is None else self._written(value, "+")

    def interval(self, bounds: tuple[float, float] | None, margin: float | None = None) -> str:
        """An interval of differences, with as many digits as it takes to see on which side of 0 and of the margin its
        limits lie."""
        if bounds is None:
            return "–"
        marks = (0.0,) if margin is None else (0.0, margin, -margin)
        return f"[{', '.join(self._written(bound, '+', marks) for bound in bounds)}]"

    def _written(self, value: float, sign: str, marks: tuple[float, ...] = ()) -> str:
        exact = self.times * value
        digits = next((n for n in range(self.digits, 9) if _same_side(round(exact, n), exact, marks, self.times)), 9)
        rounded = round(exact, digits) + 0.0  # no −0.0
        return f"{rounded:{sign}.3g}" if abs(rounded) >= 1e6 else f"{rounded:{sign}.{digits}f}"


def _same_side(shown: float, exact: float, marks: tuple[float, ...], times: int) -> bool:
    return all((shown > times * mark) == (exact > times * mark) for mark in marks) and all(
        (shown < times * mark) == (exact < times * mark) for mark in marks
    )


def p_words(p: float | None) -> str:
    """A p-value as people write it; never rounded across 5 %."""
    if p is None:
        return "–"
    if p < 0.0001:
        return "< 0.0001"
    digits = 4 if p < 0.01 else 3
    while (round(p, digits) < ALPHA) != (p < ALPHA) and digits < 9:
        digits += 1
    return f"{p:.{digits}f}"


def pair_columns(found: Comparisons) -> list[str]:
    """The columns of the table of pairs."""
    return ["arm", "against", "difference", "95% CI", "p (Holm)" if len(found.pairs) > 1 else "p", "cases", "verdict"]


def pair_cells(pair: Comparison) -> list[str]:
    """One pair as a row."""
    scale = Scale(pair.metric)
    return [
        pair.a,
        pair.b,
        scale.signed(pair.difference),
        scale.interval(pair.ci95, _margin(pair)),
        p_words(pair.p_adjusted),
        str(pair.count),
        pair.verdict,
    ]


def _margin(pair: Comparison) -> float | None:
    return None if pair.equivalence is None else pair.equivalence.margin


def sentence(pair: Comparison, margin: float | None = None) -> str:
    """The verdict on a pair in one sentence, with the interval that it is read off."""
    scale = Scale(pair.metric)
    what = f" by {pair.metric}" if pair.metric else ""
    if pair.difference is None:
        return f"{pair.a} and {pair.b} have no case in common."
    bounds = "" if pair.ci95 is None else f" {scale.interval(pair.ci95, margin)}"
    if pair.verdict in ("better", "worse"):
        by = f"{scale.signed(pair.difference)}{scale.unit}{bounds}"
        shown = f"{pair.a} is {pair.verdict} than {pair.b}: {by}{_ahead(pair)}."
        inside = pair.equivalence is not None and pair.equivalence.equivalent
        return f"{shown} That is less than ±{scale.plain(margin)}." if inside else shown
    if pair.verdict == "equivalent":
        return f"{pair.a} and {pair.b} are equivalent{what} within ±{scale.plain(margin)}{scale.unit}{bounds}."
    found = f"{scale.signed(pair.difference)}{bounds}"
    if pair.verdict == "depends on failures":
        return f"{pair.a} against {pair.b}{what}: {found} depends on the trials that failed."
    if pair.detectable is None:
        return f"cannot tell {pair.a} from {pair.b}{what}: {found}, {_why_not(pair)}."
    smallest = f"smallest detectable difference: {scale.plain(pair.detectable)}{scale.unit}"
    return f"cannot tell {pair.a} from {pair.b}{what}: {found} ({smallest})."


def _why_not(pair: Comparison) -> str:
    if pair.count < 2:
        return "there is one case"
    if pair.units < 2:
        return "all cases are of one cluster"
    if pair.ahead == pair.behind == 0:
        return "no case tells them apart"
    if pair.ci95 is None:
        return "nothing varies, and no scale says what other cases could show"
    fewest = fewest_cases(1 - pair.level)
    if pair.units < fewest:
        what = "cases" if pair.units == pair.count else "clusters"
        return f"with {pair.units} {what} no difference can show, {fewest} are needed at least"
    return f"{pair.count} cases are not enough yet"


def _ahead(pair: Comparison) -> str:
    if pair.count < 2 or pair.labels:  # with labels, who is ahead on a case is what judges said
        return ""
    return f" (ahead on {pair.ahead}, tied on {pair.tied}, behind on {pair.behind} of {pair.count} cases)"


def brief_lines(pair: Comparison) -> list[str]:
    """What nobody should miss: what decided, tests that do not agree, failures that decide, effects that differ."""
    lines = []
    if pair.variance_saved is not None:
        lines.append(f"an earlier run on more cases saves {100 * pair.variance_saved:.0f} % of the variance")
    if pair.as_judged is not None:
        lines.append(_as_judged_line(pair))
    elif pair.robustness and pair.verdict != "equivalent":  # they look for a difference, not for its absence
        lines += _agreement_lines(pair)
    if pair.failures is not None and pair.verdict == "depends on failures":
        lines += _failure_lines(pair)
    lines += [_differs_line(found) for found in pair.differs if found.p_value < ALPHA]
    if pair.run_means is not None:
        lines += _run_means_lines(pair)
    return lines


def _as_judged_line(pair: Comparison) -> str:
    scale, found = Scale(pair.metric), pair.as_judged
    assert found is not None
    return (
        f"corrected by people's labels on {pair.labels} cases; as the judges scored it: "
        f"{scale.signed(found.difference)} {scale.interval(found.ci95)}"
    )


def _agreement_lines(pair: Comparison) -> list[str]:
    """Whether other tests would have said the same, at the same level."""
    level, sure = 1 - pair.level, _decided(pair)
    others = [line for line in pair.robustness if line.p_value is not None]
    against = [line for line in others if ((line.p_value or 0.0) < level) != sure]
    if against:
        shown = ", ".join(f"{line.method} p {p_words(line.p_value)}" for line in against)
        return [f"not all tests agree (at {100 * level:.2g} %): {shown}"]
    return [f"{len(others)} other tests agree" if len(others) > 1 else "another test agrees"] if others else []


def _decided(pair: Comparison) -> bool:
    """Whether the interval leaves out 0."""
    return pair.ci95 is not None and (pair.ci95[0] > 0 or pair.ci95[1] < 0)


def metric_lines(found: Comparisons, pair: Comparison, *, details: bool) -> list[str]:
    """The pair by its other metrics; those that tell nothing are only counted, unless all is wanted."""
    own = [item for item in found.metrics if (item.a, item.b) == (pair.a, pair.b)]
    shown = [item for item in own if details or item.verdict in ("better", "worse")]
    lines = [_metric_line(item) for item in shown]
    if len(shown) < len(own):
        rest = len(own) - len(shown)
        which = f"{'other ' if shown else ''}metric{'' if rest == 1 else 's'}"
        lines.append(f"by {rest} {which} nobody can tell them apart")
    return lines


def _metric_line(item: Comparison) -> str:
    scale = Scale(item.metric)
    bounds = f" {scale.interval(item.ci95)}, p {p_words(item.p_adjusted)}" if item.ci95 else ""
    return f"{item.metric or 'score'}: {scale.signed(item.difference)}{bounds}, {item.count} cases: {item.verdict}"


def _failure_lines(pair: Comparison) -> list[str]:
    """Between what the difference lies, whatever the failed trials would have been worth."""
    scale, found = Scale(pair.metric), pair.failures
    assert found is not None
    return [
        f"if every failure {what}: {scale.signed(bound.difference)} {scale.interval(bound.ci95, _margin(pair))}, "
        f"{bound.count} cases: {bound.verdict}"
        for what, bound in ((f"spoke against {pair.a}", found.against_a), (f"spoke against {pair.b}", found.against_b))
    ]


def detail_lines(pair: Comparison) -> list[str]:
    """Everything below a pair: other tests, failures, kinds of cases."""
    scale = Scale(pair.metric)
    lines = [f"interval: {_interval_words(pair)}"]
    if pair.effect_size is not None:
        lines.append(f"effect size d_z {pair.effect_size:+.2f} (mean over deviation of the differences)")
    lines += [_robustness_line(line, scale, _plain(pair)) for line in pair.robustness]
    if pair.failures is not None:
        lines += _failure_lines(pair)
    if pair.run_means is not None:
        lines += _run_means_lines(pair)
    lines += [_group_line(group, scale) for group in pair.groups]
    lines += [_differs_line(found) for found in pair.differs]
    return lines


def _interval_words(pair: Comparison) -> str:
    """How it was made, and how sure it is for this pair alone."""
    alone = f", {100 * pair.level:.4g} % for this pair alone" if pair.comparisons > 1 else ""
    return f"{_METHODS.get(pair.method, pair.method)}{alone}"


_METHODS = {
    "t": "Student's t over cases",
    "t, over clusters": "Student's t over clusters, each left out once",
    "bounded": "bounded by the scale (few cases, or few of them carry the difference)",
    "bounded, over clusters": "bounded by the scale, over clusters (few, or few of them carry the difference)",
    "anytime-valid bets": "holds whenever the run stopped; the difference is its middle",
}


def _plain(pair: Comparison) -> str:
    return " (unadjusted)" if pair.comparisons > 1 else ""


def _robustness_line(line: Robustness, scale: Scale, plain: str) -> str:
    if line.ci95 is not None:
        return f"{line.method}: 95% CI {scale.interval(line.ci95)}"
    return f"{line.method}: p {p_words(line.p_value)}{plain}"


def _run_means_lines(pair: Comparison) -> list[str]:
    found = pair.run_means
    assert found is not None
    if found.pooled_std_err == 0:
        return [f"run means never varied ({Scale('').signed(found.score_diff)}): no test can be made of them"]
    lines = [
        f"run means (pooled t): {Scale('').signed(found.score_diff)}, p {p_words(found.p_value)}, "
        f"Cohen's d {found.effect_size:.2f}"
    ]
    if found.is_significant != _decided(pair):
        lines.append(
            "  it differs from the verdict because it asks only about these very cases; "
            "the verdict is about cases like them"
        )
    return lines


def _group_line(group: Group, scale: Scale) -> str:
    bounds = f" {scale.interval(group.ci95)}, p {p_words(group.p_value)}" if group.ci95 else ""
    return f"{group.by} {group.value}: {scale.signed(group.difference)}{bounds}, {group.count} cases: {group.verdict}"


def _differs_line(found: Differs) -> str:
    about = f"between cases with and without tag {found.value}" if found.by == "tag" else f"by {found.by}"
    answer = "yes" if found.p_value < ALPHA else "cannot tell"
    return f"does the difference differ {about}? {answer}, p {p_words(found.p_value)}"


def difficulty_line(pair: Comparison) -> str:
    """Does the effect differ by difficulty? Always answered, if only by why not."""
    found = next((item for item in pair.differs if item.by == "difficulty"), None)
    if found is not None:
        return _differs_line(found)
    groups = [group for group in pair.groups if group.by == "difficulty"]
    shown = ", ".join(f"{group.value} {Scale(pair.metric).signed(group.difference)}" for group in groups)
    why = "in one of the kinds nothing varies" if groups else "all problems are of one difficulty"
    return f"does the difference differ by difficulty? no test can be made: {why}" + (f" ({shown})" if shown else "")


def headline(found: Comparisons) -> str:
    """What is compared, in one line."""
    runs = " against ".join(found.sources)
    if len(found.sources) == 1 and len(found.run_ids) == 1:
        runs = found.run_ids[0]
    elif len(found.sources) == 1:
        runs = f"series {found.sources[0]} ({len(found.run_ids)} runs)"
    count = len(found.pairs)
    adjusted = f"; the verdicts hold for all {count} pairs together (Holm)" if count > 1 else ""
    return f"{found.metric or 'score'} of {runs}{adjusted}"
