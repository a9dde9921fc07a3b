"""Sentences and table cells about comparisons, shared by the terminal, Markdown and web pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.core.formatting import Scale, deviation, signs
from fairtrial.core.many_arms import adjustment
from fairtrial.present.words.prices import price_line
from fairtrial.present.words.solving import both_line
from fairtrial.present.words.stopping import looks_words
from fairtrial.present.words.verdicts import WORDS, lead_of, margin_words, pair_sentence, stated_words, unless_words
from fairtrial.stats.planning import fewest_cases
from fairtrial.text.printable import counted, sentence_of, significant

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Comparison, Comparisons, Differs, KindDifference, Robustness, Verdict
    from fairtrial.stats.runs import RunMeansTest

ALPHA = 0.05


def p_words(p: float | None) -> str:
    """Format a p-value; rounding never moves it across 5 %."""
    if p is None:
        return "–"
    if p < 0.0001:
        return "< 0.0001"
    digits = 4 if p < 0.01 else 3
    while (round(p, digits) < ALPHA) != (p < ALPHA) and digits < 9:
        digits += 1
    return f"{p:.{digits}f}"


def pair_columns(comparisons: Comparisons) -> list[str]:
    """Return the column names of the table of pairs."""
    return [
        "arm",
        "against",
        "difference",
        "95 % CI",
        f"p ({adjustment(comparisons.pairs[0].comparisons)})" if len(comparisons.pairs) > 1 else "p",
        "cases",
        "verdict",
    ]


def pair_cells(pair: Comparison) -> list[str]:
    """Return one pair as a table row, in the order of `pair_columns`."""
    scale = Scale(pair.metric)
    return [
        pair.a,
        pair.b,
        scale.signed(pair.difference),
        scale.words(pair.ci95, _margin(pair)),
        p_words(pair.p_adjusted),
        str(pair.count),
        WORDS[pair.verdict],
    ]


def _margin(pair: Comparison) -> float | None:
    return None if pair.equivalence is None else pair.equivalence.margin


def sentence(pair: Comparison, margin: float | None = None) -> str:
    """State the verdict on a pair, and what is behind it: on how many cases, or why nobody can tell."""
    said = [_behind_it(pair, margin), stated_words(pair.stated, pair.metric), _look_words(pair)]
    return " ".join(filter(None, [pair_sentence(pair, margin), *said]))


def _look_words(pair: Comparison) -> str:
    """Say that the interval allows for several looks; empty if there is one."""
    if pair.look is None:
        return ""
    planned = looks_words(pair.look.planned) if pair.look.planned > 1 else ""
    again = f"This is look {pair.look.again} at these arms." if pair.look.again > 1 else ""
    return " ".join(filter(None, [planned, again]))


def _behind_it(pair: Comparison, margin: float | None) -> str:
    if pair.difference is None or pair.count < 2:
        return ""
    if pair.verdict in ("better", "worse"):
        inside = pair.equivalence is not None and pair.equivalence.equivalent
        within = f"The difference is within the margin of {margin_words(margin, pair.metric)}." if inside else ""
        return " ".join(filter(None, [_ahead(pair), within]))
    if pair.verdict != "cannot tell":
        return ""
    return " ".join(filter(None, [still_words(pair), _open_words(pair)]))


def still_words(pair: Comparison) -> str:
    """Say what holds although nobody can tell; empty if nothing does."""
    if pair.breakpoint is None or not pair.breakpoint.tells:
        return ""
    return unless_words(lead_of(pair).one, pair.breakpoint, pair.metric)


def _open_words(pair: Comparison) -> str:
    if pair.detectable is None:
        return sentence_of(why_undecided(pair))
    return detectable_words(pair)


def detectable_words(pair: Comparison) -> str:
    """Say which difference these cases would show; empty if that is not known, or one as large did not show."""
    if pair.detectable is None or pair.detectable <= abs(pair.difference or 0.0):
        return ""
    shown = f"{Scale(pair.metric).plain(pair.detectable)}{'' if pair.metric else ' points'}"
    return f"In 4 of 5 runs, {counted(pair.count, 'case')} would show a gap of {shown}."


def why_undecided(pair: Comparison) -> str:
    """Say why nobody can tell, where no difference of any size would show."""
    if pair.count < 2:
        return "there is only one case"
    if pair.units < 2:
        return "all cases belong to one cluster"
    if pair.ahead == pair.behind == 0:
        return "they are tied on every case"
    if pair.ci95 is None:
        return "nothing varies, and no scale bounds what other cases could show"
    fewest = fewest_cases(1 - pair.level)
    if pair.units < fewest:
        what = "cases" if pair.units == pair.count else "clusters"
        return f"{pair.units} {what} are too few to show any difference (at least {fewest} are needed)"
    return f"{pair.count} cases are not enough yet"


def _ahead(pair: Comparison) -> str:
    if pair.labels:  # these counts would be the uncorrected judgements
        return ""
    lead = lead_of(pair)
    ahead, behind = (pair.ahead, pair.behind) if lead.one == pair.a else (pair.behind, pair.ahead)
    return f"{lead.one} is ahead on {ahead}, level on {pair.tied} and behind on {behind} of {pair.count} cases."


def basis_words(pair: Comparison, margin: float | None = None) -> str:
    """Say what a verdict is based on, in one or two sentences without a p-value."""
    cases = f"{pair.count:,} {'case has' if pair.count == 1 else 'cases have'} a score from both."
    together = f"The interval holds for all {pair.comparisons:,} pairs together ({adjustment(pair.comparisons)})."
    family = together if pair.comparisons > 1 else ""
    still = still_words(pair) if pair.verdict == "cannot tell" else ""
    smallest = detectable_words(pair) if pair.verdict == "cannot tell" else ""
    within = margin_words(margin, pair.metric)
    ignored = f"Differences below {within} do not matter here." if margin is not None else ""
    said = [cases, family, stated_words(pair.stated, pair.metric), _look_words(pair), still, smallest, ignored]
    return " ".join(filter(None, ["On cases like these.", *said]))


def brief_lines(pair: Comparison) -> list[str]:
    """Return the lines every reader should see.

    They say what the estimate is based on, which tests disagree, what the failures could change, and where the effect
    differs between kinds of cases.
    """
    lines = []
    if pair.variance_saved is not None:
        what = f"what {pair.others} other arms scored on more cases" if pair.others else "an earlier run on more cases"
        lines.append(f"{what} reduces the variance by {100 * pair.variance_saved:.0f} %")
    if pair.as_judged is not None:
        lines.append(_as_judged_line(pair))
    elif pair.robustness and pair.verdict != "equivalent":  # the tests look for a difference, not for equivalence
        lines += filter(None, [agreement_line(pair) or _disagreement_line(pair)])
    lines += [_on_this_case_line(pair)] if pair.on_this_case is not None else []
    lines += filter(None, [_paired_t_line(pair)])
    if pair.failures is not None and pair.verdict == "depends on failures":
        lines += _failure_lines(pair)
    lines += [_differs_line(interaction) for interaction in pair.differs if interaction.p_value < ALPHA]
    lines += _run_means_lines(pair) if pair.run_means is not None else []
    lines += [*both_line(pair.a, pair.b, pair.solving), *([price_line(pair.price)] if pair.price is not None else [])]
    return lines


def _as_judged_line(pair: Comparison) -> str:
    scale, uncorrected = Scale(pair.metric), pair.as_judged
    assert uncorrected is not None
    who, first = ("human labels", "the judges") if pair.labelled_by == "people" else ("a second judge", "the first")
    return (
        f"corrected by {who} on {counted(pair.labels, 'case')}; as {first} scored it: "
        f"{scale.signed(uncorrected.difference)}, 95 % CI {scale.words(uncorrected.ci95)}"
    )


def _on_this_case_line(pair: Comparison) -> str:
    """Give both tests over the answers to the only case, with their means and deviations."""
    assert pair.on_this_case is not None
    scale, test = Scale(pair.metric), pair.on_this_case.test

    def shown(value: float, digits: int = 2) -> str:
        return signs(significant(scale.factor * value, digits))  # answers to one case may hardly differ

    means = ", ".join(
        f"{arm} {shown(mean, 4)} ({deviation(spread, shown)}) over {counted(count, 'answer')}"
        for arm, mean, spread, count in (
            (pair.a, test.mean_a, test.std_dev_a, test.count_a),
            (pair.b, test.mean_b, test.std_dev_b, test.count_b),
        )
    )
    paired = "" if test.paired_p_value is None else f", paired by repeat p {p_words(test.paired_p_value)}"
    tests = f"two-sample t p {p_words(test.p_value)}{paired}{_unadjusted_note(pair)}"
    return f"on this case alone: {means}; {test.note or tests}"


def _paired_t_line(pair: Comparison) -> str | None:
    """Give the textbook's test next to a verdict that was reached in another way; None if it is the same test."""
    plain = pair.method == "t" and not pair.wordings
    if pair.paired_t is None or pair.p_value is None or plain or pair.labels or pair.variance_saved is not None:
        return None
    decides = f"the verdict's p is {p_words(pair.p_value)} ({method_words(pair)})"
    return f"paired t over {counted(pair.count, 'case')}: p {p_words(pair.paired_t.p_value)}; {decides}"


def agreement_line(pair: Comparison) -> str | None:
    """Say that other tests find at the same level what the interval shows; None if one does not, or there are none."""
    others = [line for line in pair.robustness if line.p_value is not None]
    if not others or pair.as_judged is not None or pair.verdict == "equivalent" or _disagreement_line(pair):
        return None
    found = "a difference too" if _excludes_zero(pair) else "no difference either"
    return f"{len(others)} other tests find {found}" if len(others) > 1 else f"another test finds {found}"


def _disagreement_line(pair: Comparison) -> str | None:
    """Say which other tests disagree with the interval at its level; None if none does."""
    level, significant = 1 - pair.level, _excludes_zero(pair)
    tests = [(line.method, line.p_value) for line in pair.robustness if line.p_value is not None]
    against = [f"{method} p {p_words(p)}" for method, p in tests if (p < level) != significant]
    return f"not all tests agree (at {100 * level:.2g} %): {', '.join(against)}" if against else None


def _excludes_zero(pair: Comparison) -> bool:
    return pair.ci95 is not None and (pair.ci95[0] > 0 or pair.ci95[1] < 0)


def metric_lines(comparisons: Comparisons, pair: Comparison, *, details: bool) -> list[str]:
    """Compare the pair by its other metrics; without `details`, undecided metrics are only counted."""
    own = [item for item in comparisons.metrics if (item.a, item.b) == (pair.a, pair.b)]
    shown = [item for item in own if details or item.verdict in ("better", "worse")]
    lines = [_metric_line(item) for item in shown]
    if len(shown) < len(own):
        rest = len(own) - len(shown)
        which = f"{'other ' if shown else ''}metric{'' if rest == 1 else 's'}"
        lines.append(f"{rest} {which}: {WORDS['cannot tell']}")
    return lines


def _metric_line(item: Comparison) -> str:
    scale = Scale(item.metric)
    bounds = f", 95 % CI {scale.words(item.ci95)}, p {p_words(item.p_adjusted)}" if item.ci95 else ""
    cases = counted(item.count, "case")
    return f"{item.metric or 'score'}: {scale.signed(item.difference)}{bounds}, {cases}: {WORDS[item.verdict]}"


def _failure_lines(pair: Comparison) -> list[str]:
    """Give the two extremes of the difference, whatever scores the failed trials would have got."""
    scale, failures = Scale(pair.metric), pair.failures
    assert failures is not None
    return [
        f"if every failed trial {what}: {scale.signed(bound.difference)}, 95 % CI "
        f"{scale.words(bound.ci95, _margin(pair))}, {counted(bound.count, 'case')}: {_verdict(pair, bound.verdict)}"
        for what, bound in (
            (f"counted against {pair.a}", failures.against_a),
            (f"counted against {pair.b}", failures.against_b),
        )
    ]


def _verdict(pair: Comparison, verdict: Verdict) -> str:
    """Name the arm that a verdict is about, which signs alone do not: of some metrics, less is better."""
    return f"{pair.a} is {verdict} than {pair.b}" if verdict in ("better", "worse") else WORDS[verdict]


def detail_lines(pair: Comparison) -> list[str]:
    """Return every detail of a pair: method, effect size, other tests, failures and kinds of cases."""
    scale = Scale(pair.metric)
    lines = [f"interval: {_interval_words(pair)}"]
    if pair.effect_size is not None:
        lines.append(f"effect size d_z {pair.effect_size:+.2f} (mean / standard deviation of the differences)")
    lines += [_robustness_line(line, scale, _unadjusted_note(pair)) for line in pair.robustness]
    lines += [_on_this_case_line(pair)] if pair.on_this_case is not None else []
    lines += filter(None, [_paired_t_line(pair)])
    if pair.failures is not None:
        lines += _failure_lines(pair)
    lines += _run_means_lines(pair) if pair.run_means is not None else []
    lines += [_group_line(group, scale) for group in pair.groups]
    lines += [_differs_line(interaction) for interaction in pair.differs]
    return lines


def _interval_words(pair: Comparison) -> str:
    """Describe the method of the interval and its level for this pair alone."""
    alone = f", {100 * pair.level:.4g} % for this pair alone" if pair.comparisons > 1 else ""
    return f"{_METHODS.get(pair.method, pair.method)}{_wordings(pair)}{alone}"


def _wordings(pair: Comparison) -> str:
    return f"; the {pair.wordings} wordings are a sample too (random effect)" if pair.wordings else ""


def method_words(pair: Comparison) -> str:
    """Name the method of the interval in a few words."""
    wordings = ", wordings as a random effect" if pair.wordings else ""
    return f"{_SHORT_METHODS.get(pair.method, pair.method)}{wordings}"


_SHORT_METHODS = {
    "t": "paired t over cases",
    "t, over clusters": "paired t over clusters",
    "t, widened": "paired t over cases, widened for what the scale allows",
    "t, widened, over clusters": "paired t over clusters, widened for what the scale allows",
    "bounded": "interval bounded by the scale",
    "bounded, over clusters": "interval over clusters, bounded by the scale",
    "anytime-valid bets": "interval valid whenever the run stopped",
}
_METHODS = {
    "t": "Student's t over cases",
    "t, over clusters": "Student's t over clusters, with a jackknife standard error (each cluster left out once)",
    "t, widened": "Student's t over cases, widened for what the scale allows in those not seen",
    "t, widened, over clusters": "Student's t over clusters, widened for what the scale allows in those not seen",
    "bounded": "bounded by the scale, and no narrower than Student's t (few cases, or few of them account for the "
    "difference)",
    "bounded, over clusters": "bounded by the scale, and no narrower than Student's t over clusters (few, or few of "
    "them account for the difference)",
    "anytime-valid bets": "valid whenever the run stopped (anytime-valid); the difference is its midpoint",
}


def _unadjusted_note(pair: Comparison) -> str:
    return " (unadjusted)" if pair.comparisons > 1 else ""


def _robustness_line(line: Robustness, scale: Scale, note: str) -> str:
    if line.ci95 is not None:
        return f"{line.method}: 95 % CI {scale.words(line.ci95)}"
    return f"{line.method}: p {p_words(line.p_value)}{note}"


def _run_means_lines(pair: Comparison) -> list[str]:
    test = pair.run_means
    assert test is not None
    if test.pooled_std_err == 0:
        return [f"run means never varied ({Scale('').signed(test.score_diff)}): they cannot be tested"]
    lines = [
        f"run means (pooled t): {Scale('').signed(test.score_diff)}, p {p_words(test.p_value)}, "
        f"Cohen's d {_effect_words(test)}"
    ]
    if test.is_significant != _excludes_zero(pair):
        lines.append(
            "  this test differs from the verdict because it is only about these very cases; "
            "the verdict is about cases like them"
        )
    return lines


RUN_MEANS_COLUMNS = ("pair", "difference", "t", "p", "Cohen's d")


def run_means_cells(pair: Comparison) -> list[str]:
    """Return the test of two arms by their run means as a table row, in the order of RUN_MEANS_COLUMNS.

    Empty where one of them has fewer than two runs.
    """
    test = pair.run_means
    if test is None:
        return []
    cells = [f"{pair.a} against {pair.b}", Scale("").signed(test.score_diff)]
    if test.pooled_std_err == 0:
        return [*cells, "–", "–", "no run differed"]
    return [*cells, signs(f"{test.t_statistic:.2f}"), p_words(test.p_value), _effect_words(test)]


def _effect_words(test: RunMeansTest) -> str:
    return f"{signs(f'{test.effect_size:.2f}')} ({test.effect})"


def _group_line(group: KindDifference, scale: Scale) -> str:
    bounds = f", 95 % CI {scale.words(group.ci95)}, p {p_words(group.p_value)}" if group.ci95 else ""
    shown = f"{group.by} {group.value}: {scale.signed(group.difference)}{bounds}"
    return f"{shown}, {counted(group.count, 'case')}: {WORDS[group.verdict]}"


def _differs_line(interaction: Differs) -> str:
    about = (
        f"between cases with and without tag {interaction.value}" if interaction.by == "tag" else f"by {interaction.by}"
    )
    answer = "yes" if interaction.p_value < ALPHA else "too close to call"
    return f"does the difference differ {about}? {answer}, p {p_words(interaction.p_value)}"


def subject_line(comparisons: Comparisons) -> str:
    """Say in one line what is compared."""
    runs = " against ".join(name.name for name in comparisons.names) or " against ".join(comparisons.sources)
    if len(comparisons.sources) == 1 and len(comparisons.run_ids) == 1:
        runs = comparisons.run_ids[0]
    elif len(comparisons.sources) == 1:
        runs = f"series {comparisons.sources[0]} ({len(comparisons.run_ids)} runs)"
    count = max(len(comparisons.pairs), comparisons.pairs[0].comparisons if len(comparisons.pairs) > 1 else 0)
    adjusted = f"; the verdicts hold for all {count:,} pairs together ({adjustment(count)})" if count > 1 else ""
    return f"{comparisons.metric or 'score'} of {runs}{adjusted}"
