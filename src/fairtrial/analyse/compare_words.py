"""Comparisons in words: the same ones in the terminal, in Markdown and in pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Comparison, Comparisons, Differs, Group, Robustness

_ALPHA = 0.05


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

    def interval(self, bounds: tuple[float, float] | None) -> str:
        """An interval of differences."""
        return "–" if bounds is None else f"[{self.signed(bounds[0])}, {self.signed(bounds[1])}]"

    def _written(self, value: float, sign: str) -> str:
        rounded = round(self.times * value, self.digits) + 0.0  # no −0.0
        return f"{rounded:{sign}.3g}" if abs(rounded) >= 1e6 else f"{rounded:{sign}.{self.digits}f}"


def p_words(p: float | None) -> str:
    """A p-value as people write it."""
    if p is None:
        return "–"
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.3f}"


def pair_columns(found: Comparisons) -> list[str]:
    """The columns of the table of pairs."""
    p = "p (Holm)" if len(found.pairs) > 1 else "p"
    return ["arm", "against", "difference", "95% CI", p, "cases", "verdict"]


def pair_cells(pair: Comparison) -> list[str]:
    """One pair as a row."""
    scale = Scale(pair.metric)
    return [
        pair.a,
        pair.b,
        scale.signed(pair.difference),
        scale.interval(pair.ci95),
        p_words(pair.p_adjusted),
        str(pair.count),
        pair.verdict,
    ]


def sentence(pair: Comparison, margin: float | None = None) -> str:
    """The verdict on a pair in one sentence."""
    scale = Scale(pair.metric)
    what = f" by {pair.metric}" if pair.metric else ""
    if pair.difference is None:
        return f"{pair.a} and {pair.b} have no case in common."
    by = f"{scale.plain(abs(pair.difference))}{scale.unit}"
    if pair.verdict in ("better", "worse"):
        shown = f"{pair.a} is {pair.verdict} than {pair.b}: by {by}{_effect(pair)}."
        inside = pair.equivalence is not None and pair.equivalence.equivalent
        return f"{shown} That is less than ±{scale.plain(margin)}." if inside else shown
    if pair.verdict == "equivalent":
        return f"{pair.a} and {pair.b} are equivalent{what} within ±{scale.plain(margin)}{scale.unit}."
    if pair.detectable is None:
        return f"cannot tell {pair.a} from {pair.b}{what}: {_why_not(pair)}."
    smallest = f"smallest detectable difference: {scale.plain(pair.detectable)}{scale.unit}"
    return f"cannot tell {pair.a} from {pair.b}{what} ({smallest})."


def _why_not(pair: Comparison) -> str:
    if pair.count < 2:
        return "there is one case"
    if pair.units < 2:
        return "all cases are of one cluster"
    if not pair.difference:
        return "no case tells them apart"
    if pair.std_err == 0:
        return f"the same difference in all {pair.count} cases, but they are too few to be sure"
    return f"{pair.count} cases are not enough yet"


def _effect(pair: Comparison) -> str:
    if pair.count < 2:
        return ""
    cases = f"ahead on {pair.ahead}, tied on {pair.tied}, behind on {pair.behind} of {pair.count} cases"
    if pair.effect is None or pair.effect_size is None:
        return f" ({cases})"
    article = "an" if pair.effect[0] in "aeiou" else "a"
    return f", {article} {pair.effect} effect (d_z {abs(pair.effect_size):.2f}; {cases})"


def brief_lines(pair: Comparison) -> list[str]:
    """What nobody should miss: tests that do not agree, failures that decide, effects that differ."""
    lines = []
    says = _says(pair.p_value, pair.difference)
    others = [line for line in pair.robustness if line.p_value is not None]
    against = [line for line in others if (line.p_value or 0.0) >= _ALPHA] if says else []
    for_it = [line for line in others if (line.p_value or 1.0) < _ALPHA] if not says else []
    if against or for_it:
        shown = ", ".join(f"{line.method} p {p_words(line.p_value)}" for line in against or for_it)
        lines.append(f"not all tests agree (paired p {p_words(pair.p_value)}): {shown}")
    elif others:
        lines.append(f"{len(others)} other tests agree" if len(others) > 1 else "another test agrees")
    worst = pair.failures_as_worst
    if worst is not None and _says(worst.p_value, worst.difference) != says:
        lines.append(_failures_line(pair))
        lines.append("  what failures count for decides this comparison: look at them before you choose")
    lines += [_differs_line(found) for found in pair.differs if found.p_value < _ALPHA]
    if pair.run_means is not None:
        lines += _run_means_lines(pair)
    return lines


def metric_lines(found: Comparisons, pair: Comparison, *, details: bool) -> list[str]:
    """The pair by its other metrics; those that tell nothing are only counted, unless all is wanted."""
    own = [item for item in found.metrics if (item.a, item.b) == (pair.a, pair.b)]
    shown = [item for item in own if details or item.verdict in ("better", "worse")]
    lines = [_metric_line(item) for item in shown]
    if len(shown) < len(own):
        rest = len(own) - len(shown)
        lines.append(f"by {rest} {'other metrics' if shown else 'metrics'} nobody can tell them apart")
    return lines


def _metric_line(item: Comparison) -> str:
    scale = Scale(item.metric)
    bounds = f" {scale.interval(item.ci95)}, p {p_words(item.p_adjusted)}" if item.ci95 else ""
    return f"{item.metric or 'score'}: {scale.signed(item.difference)}{bounds}, {item.count} cases: {item.verdict}"


def _failures_line(pair: Comparison) -> str:
    scale, worst = Scale(pair.metric), pair.failures_as_worst
    assert worst is not None
    what = "the worst" if pair.metric else "0"
    bounds = f" {scale.interval(worst.ci95)}, p {p_words(worst.p_value)}{_plain(pair)}"
    return f"failures counted as {what}: {scale.signed(worst.difference)}{bounds}, {worst.count} cases"


def _plain(pair: Comparison) -> str:
    return " (unadjusted)" if pair.comparisons > 1 else ""


def detail_lines(pair: Comparison) -> list[str]:
    """Everything below a pair: other tests, failures, kinds of cases."""
    scale = Scale(pair.metric)
    lines = [_robustness_line(line, scale, _plain(pair)) for line in pair.robustness]
    if pair.failures_as_worst is not None:
        lines.append(_failures_line(pair))
    if pair.run_means is not None:
        lines += _run_means_lines(pair)
    lines += [_group_line(group, scale) for group in pair.groups]
    lines += [_differs_line(found) for found in pair.differs]
    return lines


def _says(p: float | None, difference: float | None) -> int:
    if p is None or p >= _ALPHA or not difference:
        return 0
    return 1 if difference > 0 else -1


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
        f"Cohen's d {found.effect_size:.2f} ({found.effect})"
    ]
    if found.is_significant != (pair.verdict in ("better", "worse")):
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
    answer = "yes" if found.p_value < _ALPHA else "cannot tell"
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
    adjusted = f"; p-values are adjusted for {count} comparisons (Holm), intervals are not" if count > 1 else ""
    return f"{found.metric or 'score'} of {runs}{adjusted}"
