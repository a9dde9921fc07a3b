"""The report on prompt styles in words and tables, the same in the terminal, HTML, Markdown, LaTeX, CSV and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairtrial.analyse.comparison import Comparison, Comparisons
from fairtrial.analyse.leaderboard import Leaderboard, comparison_leaderboard
from fairtrial.analyse.optimisation import COMPOSITE, QUALITY_COMPOSITE, Cell, OptimisationReport, Slice, in_order
from fairtrial.analyse.wording.comparisons import p_words
from fairtrial.analyse.wording.leaderboards import headline_parts
from fairtrial.analyse.wording.numbers import deviation
from fairtrial.analyse.wording.scale import Scale, interval_words, signs
from fairtrial.analyse.wording.verdicts import Part
from fairtrial.core.text import counted

ALL = "all problems"


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
    Measure("normalised_gap", "gap", 1.0, 2, "0 at the optimum, 1 at no better than random feasible points"),
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
    problem_count: str
    verdict: str


def leaderboard_of(report: OptimisationReport) -> Leaderboard | None:
    """Return who leads by the composite; None if there is only one arm."""
    return comparison_leaderboard(report.comparisons) if report.comparisons else None


def headline(report: OptimisationReport) -> str:
    """Say in one sentence which style leads by the composite."""
    return "".join(part.text for part in headline_of(report))


def headline_of(report: OptimisationReport) -> list[Part]:
    """Return the headline in pieces, so that a page can link the arms."""
    leaderboard = leaderboard_of(report)
    return (
        headline_parts(leaderboard) if leaderboard else [Part("One style only: there is nothing to compare it with.")]
    )


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
    return f"{pair.verdict} ({signs(Scale(pair.metric).signed(pair.difference))})"


def style_table(report: OptimisationReport, by: str = "difficulty") -> list[Group]:
    """Return the guide's table: every style on all problems, then on each kind of them."""
    groups = [Group(ALL, [_row(arm.arm, arm.overall) for arm in report.arms])]
    kinds = report.kinds(by)
    for kind in kinds if len(kinds) > 1 else ():
        rows = [_row(arm.arm, arm.by[by][kind]) for arm in report.arms if kind in arm.by[by]]
        groups.append(Group(kind_words(by, kind), rows))
    return groups


def kind_words(by: str, kind: str) -> str:
    """Name a kind of problem: `easy`, `n = 10`, `box qp`."""
    return f"n = {kind[1:]}" if by == "n" else kind.replace("_", " ") if by == "family" else kind


def _row(arm: str, part: Slice) -> Row:
    return Row(
        arm,
        str(part.trials),
        shown_cells(part),
        f"{part.median_normalised_gap:.2f}",
    )


def shown_cells(part: Slice, most_digits: int = 9) -> list[Shown]:
    """Return a style's cell for every measure, with at most so many digits."""
    return [
        _shown(part.cells.get(measure.key), measure.factor, min(measure.digits, most_digits)) for measure in MEASURES
    ]


def _shown(cell: Cell | None, factor: float, digits: int) -> Shown:
    def number(value: float) -> str:
        return signs(f"{round(factor * value, digits) + 0.0:.{digits}f}")

    if cell is None or cell.mean is None:
        return Shown("–")
    return Shown(
        number(cell.mean),
        "" if cell.std_dev is None else deviation(cell.std_dev, number),
        "" if cell.ci95 is None else f"[{number(cell.ci95[0])}, {number(cell.ci95[1])}]",
    )


def measure_notes(report: OptimisationReport) -> list[str]:
    """Say what each column of the table is."""
    return [f"{one.name}: {one.means.format(*report.weights)}" for one in MEASURES]


TABLE_NOTE = (
    "The mean, its standard deviation between problems (sd), and the 95 % interval of the mean over families of "
    "problems. The deviation between answers to one problem is in the CSV file."
)
DIFFERENCE_NOTE = (
    "Differences are paired by problem. Intervals and p-values hold for all pairs together (Holm), by the composite "
    "and, as a second family, by the other measures; those by difficulty are adjusted for each other too."
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
            str(pair.count),
            pair.verdict,
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
                    str(group.count),
                    group.verdict,
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
            "repeat the question": arm.overall.echoes,
            "are cut off": arm.overall.truncated,
            "state a wrong objective": arm.overall.misreported,
        }
        told = ", ".join(f"{count} {words}" for words, count in faults.items() if count)
        if told:
            lines.append(f"{arm.arm}: of {counted(arm.overall.trials, 'answer')} {told}.")
    return lines


def listed(items: Sequence[str]) -> str:
    """Join names: `a, b and c`."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
