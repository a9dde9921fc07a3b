"""The report on prompt styles in words and tables, the same in the terminal, HTML, Markdown, LaTeX, CSV and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairtrial.analyse.comparison import Comparison, Comparisons, OnThisCase
from fairtrial.analyse.kinds import in_order
from fairtrial.analyse.leaderboard import Leaderboard, comparison_leaderboard
from fairtrial.core.formatting import Scale, deviation, interval_words, signs
from fairtrial.present.words.comparisons import p_words
from fairtrial.present.words.leaderboards import headline_parts
from fairtrial.present.words.verdicts import WORDS, Part
from fairtrial.text.printable import counted, significant
from fairtrial.tracks.optimisation.analysis import (
    COMPOSITE,
    QUALITY_COMPOSITE,
    Cell,
    OptimisationReport,
    Slice,
)
from fairtrial.tracks.optimisation.verify import GapKind

_NEARLY_ZERO = 1e-9
ALL = "all problems"
HERE = "on this instance"


class Measure(NamedTuple):
    """How a measure is shown: its name, the factor to what is printed, digits, and what it means."""

    key: str
    name: str
    factor: float
    digits: int
    means: str


MEASURES = (
    Measure(
        "instruction_following",
        "followed",
        100.0,
        0,
        "% of answers that are JSON with `x` of the right length and `objective_value`",
    ),
    Measure("feasible", "feasible", 100.0, 0, "% of answers whose recomputed violation is within the tolerance"),
    Measure("normalised_gap", "gap", 1.0, 2, "{2}"),
    Measure(COMPOSITE, "composite", 1.0, 3, "the guide's: {0:g} × followed + {1:g} × (1 − gap)"),
    Measure(
        QUALITY_COMPOSITE,
        "quality composite",
        1.0,
        3,
        "ours: {0:g} × followed + {1:g} × quality / 100; quality counts feasibility: 100 × (1 − gap) of a feasible "
        "answer, at most half of that of an infeasible one",
    ),
)

DISTANCES = (
    Measure("relative_gap", "relative gap", 1.0, 3, "|f − f*| / max(|f*|, 1e-8)"),
    Measure("absolute_gap", "absolute gap", 1.0, 3, "|f − f*|"),
    Measure("violation", "violation", 1.0, 3, "the largest of an answer, scaled by its row's norm; 0 if none"),
    Measure("l2_distance", "L2 distance", 1.0, 3, "from x to that of the baseline"),
    Measure("reported_violation", "reported violation", 1.0, 3, "the largest that an answer reports"),
    Measure(
        "reported_credit",
        "reported credit",
        1.0,
        3,
        "the quality of 0–100, if the violation that is reported were true",
    ),
    Measure("quality", "quality", 1.0, 3, "the same of 0–100 by the recomputed violation, and 0 without a point"),
)
_GAP_WORDS: dict[GapKind, str] = {
    "chance": "0 at the optimum, 1 at no better than random feasible points",
    "relative": "the relative gap of the claimed objective, at most 1",
    "absolute": "the absolute gap of the claimed objective, at most 1, since the optimum is 0",
    "exact": "0 at the optimum, 1 anywhere else",
}


class Shown(NamedTuple):
    """One cell: a mean, its deviation between problems, and its interval; empty where there is none."""

    mean: str
    deviation: str = ""
    interval: str = ""

    @property
    def main(self) -> str:
        """Return the mean with its deviation: `0.84 (sd 0.21)`."""
        return f"{self.mean} ({self.deviation})" if self.deviation else self.mean


class Row(NamedTuple):
    """One style on some problems."""

    arm: str
    answers: str
    cells: list[Shown]
    median_gap: str


class Group(NamedTuple):
    """All styles on some problems."""

    title: str
    rows: list[Row]


class Difference(NamedTuple):
    """A pair on some problems: a − b by a measure."""

    problems: str
    measure: str
    a: str
    b: str
    difference: str
    interval: str
    p: str
    paired_t: str
    problem_count: str
    verdict: str


DIFFERENCE_COLUMNS = (
    "problems", "by", "style", "against", "difference", "95 % CI", "p (Holm)", "paired t p", "count", "verdict"
)  # fmt: skip


def leaderboard_of(report: OptimisationReport) -> Leaderboard | None:
    """Return who leads by the composite; None if there is only one arm."""
    return comparison_leaderboard(report.comparisons) if report.comparisons else None


def headline(report: OptimisationReport) -> str:
    """Say in one sentence which style leads by the composite."""
    return "".join(part.text for part in headline_of(report))


def headline_of(report: OptimisationReport) -> list[Part]:
    """Return the headline in pieces, so that a page can link the arms."""
    leaderboard = leaderboard_of(report)
    if leaderboard is None:
        return [Part("One style only: there is nothing to compare it with.")]
    return [part if part.arm else Part(_of_instances(part.text)) for part in headline_parts(leaderboard)]


def _of_instances(text: str) -> str:
    """Say `instance`, as those who work on optimisation do, where there is only one case."""
    return text.replace("there is only one case", "there is only one instance").replace(
        "On this case", "On this instance"
    )


def gap_words(report: OptimisationReport) -> str:
    """Say what the gap of 0–1 is; that depends on what is known of a problem."""
    kinds = report.setup.gaps
    if len(kinds) < 2:
        return next((_GAP_WORDS[kind] for kind in kinds), _GAP_WORDS["chance"])
    return "; ".join(f"on {counted(count, 'problem')} {_GAP_WORDS[kind]}" for kind, count in kinds.items())


def spread_words(report: OptimisationReport) -> str:
    """Say what the deviation and the interval in a cell are over."""
    if report.one_instance:
        return "mean, sd between answers and 95 % CI over them, on this instance"
    return "mean, sd between problems and 95 % CI"


def composite_words(report: OptimisationReport) -> str:
    """Say what the composite of the headline is."""
    following, closeness = report.weights
    return (
        f"The composite is the guide's: {following:g} × followed + {closeness:g} × (1 − gap), each over all answers. "
        "It does not count feasibility; the quality composite does."
    )


def second_opinion(report: OptimisationReport) -> str:
    """Say whether the quality composite, which counts feasibility, leads to the same verdicts; empty without pairs."""
    if report.comparisons is None:
        return ""
    ours = {(one.a, one.b): one for one in report.comparisons.metrics if one.metric == QUALITY_COMPOSITE}
    apart = [pair for pair in report.comparisons.pairs if ours[pair.a, pair.b].verdict != pair.verdict]
    if not apart:
        return "By the quality composite, every verdict is the same."
    shown = "; ".join(
        f"{pair.a} against {pair.b} {_verdict(ours[pair.a, pair.b])}, by the composite {_verdict(pair)}"
        for pair in apart[:3]
    )
    more = f"; and {len(apart) - 3} more" if len(apart) > 3 else ""
    return f"By the quality composite, other verdicts: {shown}{more}."


def _verdict(pair: Comparison) -> str:
    return f"{WORDS[pair.verdict]} ({signs(Scale(pair.metric).signed(pair.difference))})"


def style_table(report: OptimisationReport, by: str = "difficulty") -> list[Group]:
    """Return the guide's table: every style on all problems, then on each kind of them."""
    return [Group(title, [_row(name, part) for name, part in parts]) for title, parts in _parts(report, by)]


def _parts(report: OptimisationReport, by: str) -> Iterator[tuple[str, list[tuple[str, Slice]]]]:
    """Yield every style on all problems, then on each kind of them, if there are several."""
    yield (HERE if report.one_instance else ALL), [(arm.arm, arm.overall) for arm in report.arms]
    kinds = report.kinds(by)
    for kind in kinds if len(kinds) > 1 else ():
        yield kind_words(by, kind), [(arm.arm, arm.by[by][kind]) for arm in report.arms if kind in arm.by[by]]


def gap_measures(report: OptimisationReport) -> list[Measure]:
    """Return the gaps and distances that any style has."""
    there = {key for arm in report.arms for key in arm.overall.cells}
    wanted = there if "reported_credit" in there else there - {"quality"}  # the other table has it in its composite
    return [one for one in DISTANCES if one.key in wanted]


def gap_table(report: OptimisationReport, by: str = "difficulty") -> list[Group]:
    """Return gaps, violations and distances as the guide defines them, of every style: mean, deviation and median."""
    measures = gap_measures(report)
    return [
        Group(title, [Row(name, str(part.trials), gap_cells(part, measures), "") for name, part in parts])
        for title, parts in _parts(report, by)
        if measures
    ]


def gap_cells(part: Slice, measures: Sequence[Measure]) -> list[Shown]:
    """Return mean, deviation and median of each measure; the deviation is that of the other table."""
    return [_distance(part.cells.get(measure.key), measure.digits) for measure in measures]


def _distance(cell: Cell | None, digits: int) -> Shown:
    def number(value: float) -> str:
        return signs(significant(value, digits))

    if cell is None or cell.mean is None:
        return Shown("–")
    spread = cell.within if cell.over_answers else cell.std_dev
    median = "" if cell.median is None else f"median {number(cell.median)}"
    return Shown(number(cell.mean), "" if spread is None else deviation(spread, number), median)


def kind_words(by: str, kind: str) -> str:
    """Name a kind of problem: `easy`, `n = 10`, `box qp`."""
    return f"n = {kind[1:]}" if by == "n" else kind.replace("_", " ") if by == "family" else kind


def _row(arm: str, part: Slice) -> Row:
    return Row(
        arm,
        str(part.trials),
        shown_cells(part),
        "–" if (found := part.median("normalised_gap")) is None else shown_number(found, 2),
    )


def shown_cells(part: Slice, most_digits: int = 9) -> list[Shown]:
    """Return a style's cell for every measure, with at most this many digits."""
    return [
        _shown(part.cells.get(measure.key), measure.factor, min(measure.digits, most_digits)) for measure in MEASURES
    ]


def shown_number(value: float, digits: int) -> str:
    """Format a number with this many digits; one that is nearly 0 is not called 0, which is the optimum itself."""
    rounded = round(value, digits) + 0.0
    small = not rounded and abs(value) > _NEARLY_ZERO
    return signs(f"{value:.1g}" if small else f"{rounded:.{digits}f}")


def _shown(cell: Cell | None, factor: float, digits: int) -> Shown:
    def number(value: float) -> str:
        return shown_number(factor * value, digits)

    if cell is None or cell.mean is None:
        return Shown("–")
    # With one problem there is none between problems; with others next to it, the two are never mixed.
    spread = cell.within if cell.over_answers else cell.std_dev
    return Shown(
        number(cell.mean),
        "" if spread is None else deviation(spread, number),
        "" if cell.ci95 is None else f"[{number(cell.ci95[0])}, {number(cell.ci95[1])}]",
    )


def measure_notes(report: OptimisationReport) -> list[str]:
    """Say what each column of the table is."""
    return [f"{one.name}: {one.means.format(*report.weights, gap_words(report))}" for one in MEASURES]


def gap_notes(report: OptimisationReport) -> list[str]:
    """Say what each column of the table of gaps is."""
    return [f"{one.name}: {one.means}" for one in gap_measures(report)]


def table_note(report: OptimisationReport) -> str:
    """Say what is in a cell of the table."""
    if report.one_instance:
        return (
            "The mean over the answers, their standard deviation (sd), and the 95 % interval of the mean over answers "
            "(Student's t; of rates, and where nothing varies, bounded by the scale): all of it on this instance."
        )
    return (
        "The mean, its standard deviation between problems (sd), and the 95 % interval of the mean over families of "
        "problems. The deviation between answers to one problem is in the CSV file."
    )


GAP_WORDS = "Relative gap: |f − f*| / max(|f*|, 1e-8); absolute gap: |f − f*|."


def gap_note(report: OptimisationReport) -> str:
    """Say what is in a cell of the table of gaps."""
    over = "answers" if report.one_instance else "problems"
    return f"Over answers that give a point: the mean, its standard deviation between {over} (sd), and the median."


def difference_note(report: OptimisationReport) -> str:
    """Say what the differences and their tests are."""
    return f"{_DIFFERENCE_NOTE}{_HERE_NOTE if report.one_instance else ''}"


_HERE_NOTE = (
    " On this instance, the answers are the sample: p is that of the two-sample t-test with pooled variance, followed "
    "by that of the t-test paired by run, and count says how many answers each style has. Nothing follows for other "
    "problems."
)
_DIFFERENCE_NOTE = (
    "Differences are paired by problem. Intervals and p-values hold for all pairs together (Holm), by the composite "
    "and, as a second family, by the other measures; those by difficulty are adjusted for each other too. Also shown: "
    "the p of the paired t-test over problems, which takes no account of families, wordings, limits of the scale or "
    "other pairs."
)


def differences(report: OptimisationReport, by: str = "difficulty") -> list[Difference]:
    """Return every pair on all problems by the composite, then by the other measures, then by kind of problem."""
    found = report.comparisons
    return [] if found is None else [*_overall(found), *_by_kind(found, by)]


def _overall(found: Comparisons) -> Iterator[Difference]:
    for pair in (*found.pairs, *found.metrics):
        yield Difference(
            ALL,
            measure_name(pair.metric),
            pair.a,
            pair.b,
            signs(Scale(pair.metric).signed(pair.difference)),
            "–" if pair.ci95 is None else interval_words(pair.ci95, pair.metric),
            p_words(pair.p_adjusted),
            p_words(pair.paired_t.p_value if pair.paired_t else None),
            str(pair.count),
            WORDS[pair.verdict],
        )
        if pair.on_this_case is not None:
            yield _on_this_instance(pair, pair.on_this_case)


def _on_this_instance(pair: Comparison, found: OnThisCase) -> Difference:
    """Return the tests over the answers to the only problem: two-sample, and paired by run."""
    test = found.test
    return Difference(
        HERE,
        measure_name(pair.metric),
        pair.a,
        pair.b,
        signs(Scale(pair.metric).signed(test.difference)),
        "–" if test.ci95 is None else interval_words(test.ci95, pair.metric),
        p_words(found.p_adjusted),
        p_words(test.paired_p_value),
        f"{test.count_a} + {test.count_b}",
        WORDS[found.verdict],
    )


def _by_kind(found: Comparisons, by: str) -> Iterator[Difference]:
    attribute = "category" if by == "family" else "tag" if by == "n" else by
    for pair in found.pairs:
        for group in sorted(pair.groups, key=lambda one: in_order(one.value)):
            if group.by == attribute:
                yield Difference(
                    kind_words(by, group.value),
                    measure_name(pair.metric),
                    pair.a,
                    pair.b,
                    signs(Scale(pair.metric).signed(group.difference)),
                    "–" if group.ci95 is None else interval_words(group.ci95, pair.metric),
                    p_words(group.p_value),
                    p_words(group.paired_t.p_value if group.paired_t else None),
                    str(group.count),
                    WORDS[group.verdict],
                )


def measure_name(key: str) -> str:
    """Return what a measure is called."""
    return next((one.name for one in MEASURES if one.key == key), key.replace("_", " "))


def interaction_lines(report: OptimisationReport) -> list[str]:
    """Say whether the effect differs by difficulty, for every pair."""
    lines = []
    for pair in report.comparisons.pairs if report.comparisons else ():
        for one in pair.differs:
            if one.by == "difficulty":
                found = "differs" if one.p_value < 0.05 else "no sign that it differs"
                lines.append(f"{pair.a} against {pair.b}, effect by difficulty: {found} (p {p_words(one.p_value)})")
    return lines


def format_table(report: OptimisationReport) -> tuple[list[str], list[list[str]]]:
    """Return how far each style keeps to the format, step by step: column names and rows."""
    columns = ["arm", *report.format_steps, "echoes", "cut off"]
    rows = [
        [
            arm.arm,
            *(f"{100 * share:.0f} %" for share in arm.overall.steps),
            str(arm.overall.echoes),
            str(arm.overall.truncated),
        ]
        for arm in report.arms
        if arm.overall.steps
    ]
    return columns, rows


def length_lines(report: OptimisationReport) -> list[str]:
    """Say how long the styles are, and how much they differ."""
    if not report.lengths:
        return []
    told = ", ".join(
        f"{one.style} {one.words:.0f} ({one.fewest}–{one.most}, {counted(one.wordings, 'wording')})"
        for one in report.lengths
    )
    means = [one.words for one in report.lengths]
    lines = [f"Words that a style adds to a problem: {told}."]
    if len(means) > 1 and max(means) - min(means) >= 3:
        lines.append(
            f"The styles differ by up to {max(means) - min(means):.0f} words, so length and tone cannot be told apart; "
            "`--match-length` evens them out."
        )
    return lines


def warnings(report: OptimisationReport) -> list[str]:
    """Return what a reader must know before trusting the table."""
    lines = []
    if report.beaten:
        shown = ", ".join(report.beaten[:5])
        lines.append(f"BASELINE BEATEN by {counted(len(report.beaten), 'answer')}: {shown}. Check the baseline.")
    if report.left_out:
        lines.append(f"No scored answers: {', '.join(report.left_out)}.")
    if report.setup.known < report.setup.problems:
        missing = report.setup.problems - report.setup.known
        lines.append(f"{counted(missing, 'problem')} known by a baseline alone: nothing about feasibility there.")
    for arm in report.arms:
        faults = {
            ("repeats the question", "repeat the question"): arm.overall.echoes,
            ("is cut off", "are cut off"): arm.overall.truncated,
            ("states a wrong objective", "state a wrong objective"): arm.overall.misreported,
        }
        told = ", ".join(f"{count} {words[count > 1]}" for words, count in faults.items() if count)
        if told:
            lines.append(f"{arm.arm}: of {counted(arm.overall.trials, 'answer')} {told}.")
    return lines


def listed(items: Sequence[str]) -> str:
    """Join names: `a, b and c`."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
