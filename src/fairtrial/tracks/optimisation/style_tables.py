"""The tables of the report on prompt styles, the same in the terminal, HTML, Markdown, LaTeX and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from fairtrial.analyse.comparison import Comparison, Comparisons, KindDifference, Verdict
from fairtrial.analyse.kinds import in_order
from fairtrial.core.formatting import Scale, deviation, interval_words, signs
from fairtrial.present.words.comparisons import p_words
from fairtrial.present.words.verdicts import WORDS
from fairtrial.text.printable import significant
from fairtrial.tracks.optimisation.analysis import COMPOSITE, QUALITY_COMPOSITE, Cell, OptimisationReport, Slice

_NEARLY_ZERO = 1e-9
ALL = "all problems"
HERE = "on this instance"


class Measure(NamedTuple):
    """How a measure is shown: its name, the factor to what is printed, digits, and what it means."""

    key: str
    name: str
    means: str
    factor: float = 1.0
    digits: int = 3


MEASURES = (
    Measure(
        "instruction_following",
        "followed",
        "% of answers that are JSON with `x` of the right length and `objective_value`",
        factor=100.0,
        digits=0,
    ),
    Measure("feasible", "feasible", "% of answers whose recomputed violation is within the tolerance", 100.0, 0),
    Measure("normalised_gap", "gap", "{2}", digits=2),
    Measure(COMPOSITE, "composite", "the guide's: {0:g} × followed + {1:g} × (1 − gap)"),
    Measure(
        QUALITY_COMPOSITE,
        "quality composite",
        "ours: {0:g} × followed + {1:g} × quality / 100; quality counts feasibility: 100 × (1 − gap) of a feasible "
        "answer, at most half of that of an infeasible one",
    ),
)

DISTANCES = (
    Measure("relative_gap", "relative gap", "|f − f*| / max(|f*|, 1e-8)"),
    Measure("absolute_gap", "absolute gap", "|f − f*|"),
    Measure("violation", "violation", "the largest of an answer, scaled by its row's norm; 0 if none"),
    Measure("l2_distance", "L2 distance", "from x to that of the baseline"),
    Measure("reported_violation", "reported violation", "the largest that an answer reports"),
    Measure("reported_credit", "reported credit", "the quality of 0–100, if the violation that is reported were true"),
    Measure("quality", "quality", "the same of 0–100 by the recomputed violation, and 0 without a point"),
)


class ShownCell(NamedTuple):
    """One cell: a mean, its deviation between problems, and its interval; empty where there is none."""

    mean: str
    deviation: str = ""
    interval: str = ""

    @property
    def main(self) -> str:
        """Return the mean with its deviation: `0.84 (sd 0.21)`."""
        return f"{self.mean} ({self.deviation})" if self.deviation else self.mean


class StyleRow(NamedTuple):
    """One style on some problems."""

    arm: str
    answers: str
    cells: list[ShownCell]
    median_gap: str


class Group(NamedTuple):
    """All styles on some problems."""

    title: str
    rows: list[StyleRow]


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
    """Return gaps, violations and distances as the guide defines them, of every style: mean, deviation and median.

    The deviation is that of the other table.
    """
    measures = gap_measures(report)

    def row(arm: str, part: Slice) -> StyleRow:
        return StyleRow(arm, str(part.trials), [_distance(part.cells.get(one.key), one.digits) for one in measures], "")

    return [Group(title, [row(*one) for one in parts]) for title, parts in _parts(report, by) if measures]


def _distance(cell: Cell | None, digits: int) -> ShownCell:
    def number(value: float) -> str:
        return signs(significant(value, digits))

    return _shown(cell, number, lambda one: "" if one.median is None else f"median {number(one.median)}")


def kind_words(by: str, kind: str) -> str:
    """Name a kind of problem: `easy`, `n = 10`, `box qp`."""
    return f"n = {kind[1:]}" if by == "n" else kind.replace("_", " ") if by == "family" else kind


def _row(arm: str, part: Slice) -> StyleRow:
    return StyleRow(
        arm,
        str(part.trials),
        shown_cells(part),
        "–" if (found := part.median("normalised_gap")) is None else shown_number(found, 2),
    )


def shown_cells(part: Slice, most_digits: int = 9) -> list[ShownCell]:
    """Return a style's cell for every measure, with at most this many digits."""
    return [_with_interval(part.cells.get(one.key), one.factor, min(one.digits, most_digits)) for one in MEASURES]


def shown_number(value: float, digits: int) -> str:
    """Format a number with this many digits; one that is nearly 0 is not called 0, which is the optimum itself."""
    rounded = round(value, digits) + 0.0
    small = not rounded and abs(value) > _NEARLY_ZERO
    return signs(f"{value:.1g}" if small else f"{rounded:.{digits}f}")


def _with_interval(cell: Cell | None, factor: float, digits: int) -> ShownCell:
    def number(value: float) -> str:
        return shown_number(factor * value, digits)

    return _shown(cell, number, lambda one: "" if one.ci95 is None else f"[{', '.join(map(number, one.ci95))}]")


def _shown(cell: Cell | None, number: Callable[[float], str], below: Callable[[Cell], str]) -> ShownCell:
    if cell is None or cell.mean is None:
        return ShownCell("–")
    # With one problem there is none between problems; with others next to it, the two are never mixed.
    spread = cell.within if cell.over_answers else cell.std_dev
    return ShownCell(number(cell.mean), "" if spread is None else deviation(spread, number), below(cell))


def differences(report: OptimisationReport) -> list[Difference]:
    """Return every pair on all problems by the composite, then by the other measures, then by kind of problem."""
    found = report.comparisons
    return [] if found is None else [*_overall(found), *_by_difficulty(found)]


def _overall(found: Comparisons) -> Iterator[Difference]:
    for pair in (*found.pairs, *found.metrics):
        yield _difference(ALL, pair, pair, pair.p_adjusted)
        if (here := pair.on_this_case) is not None:  # the answers are the sample: two-sample, and paired by run
            count = f"{here.test.count_a} + {here.test.count_b}"
            tests = (here.p_adjusted, here.test.paired_p_value)
            yield _shown_difference(HERE, pair, here.test.difference, here.test.ci95, tests, count, here.verdict)


def _by_difficulty(found: Comparisons) -> Iterator[Difference]:
    for pair in found.pairs:
        for group in sorted(pair.groups, key=lambda one: in_order(one.value)):
            if group.by == "difficulty":
                yield _difference(group.value, pair, group, group.p_value)


def _difference(
    problems: str, pair: Comparison, part: Comparison | KindDifference, p_value: float | None
) -> Difference:
    tests = (p_value, part.paired_t.p_value if part.paired_t else None)
    return _shown_difference(problems, pair, part.difference, part.ci95, tests, str(part.count), part.verdict)


def _shown_difference(
    problems: str,
    pair: Comparison,
    difference: float | None,
    ci95: tuple[float, float] | None,
    p_values: tuple[float | None, float | None],
    count: str,
    verdict: Verdict,
) -> Difference:
    scale = Scale(pair.metric)
    interval = "–" if ci95 is None else interval_words(ci95, pair.metric)
    shown = (signs(scale.signed(difference)), interval, *map(p_words, p_values), count, WORDS[verdict])
    return Difference(problems, measure_name(pair.metric), pair.a, pair.b, *shown)


def measure_name(key: str) -> str:
    """Return what a measure is called."""
    return next((one.name for one in MEASURES if one.key == key), key.replace("_", " "))


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
