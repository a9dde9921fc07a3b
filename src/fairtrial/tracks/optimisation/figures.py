"""Prompt styles on optimisation problems: gaps and rates with their intervals, and every answer to one problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from fairtrial.analyse.comparison import Comparison, KindDifference
from fairtrial.analyse.kinds import in_order
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.core.formatting import Scale, interval_words, signs
from fairtrial.present.charts import DotRow, ForestRow, TrellisCell, TrellisRow, dot_rows, small_forest, trellis
from fairtrial.present.charts.marks import Interval, Tone
from fairtrial.present.charts.svg import safe
from fairtrial.present.figures.leaders import TONES, Figure
from fairtrial.tracks.optimisation.analysis import AnswerGap, Cell, OptimisationReport
from fairtrial.tracks.optimisation.style_tables import ALL, kind_words, shown_number
from fairtrial.tracks.optimisation.words import gap_words

_MOST_ARMS = 6  # columns that a page has room for
_MOST_PAIRS = 6
_MOST_DOTS = 150  # in one row
_NEAR = 0.01
_LEAD: tuple[Tone, Tone] = ("lead", "behind")


class DrawnMeasure(NamedTuple):
    """How a metric is shown: its name, the factor to its axis, digits, unit and what it means."""

    name: str
    factor: float
    digits: int
    high: float
    words: str
    higher_is_better: bool = True


METRICS = {
    "normalised_gap": DrawnMeasure("Gap", 1.0, 2, 1.0, "", higher_is_better=False),  # what it is, the report knows
    "feasible": DrawnMeasure("Feasible", 100.0, 0, 100.0, "Percent of answers that keep every constraint"),
    "instruction_following": DrawnMeasure(
        "Followed", 100.0, 0, 100.0, "Percent of answers in the format that was asked for"
    ),
    "quality": DrawnMeasure("Quality", 1.0, 1, 100.0, "0–100: how close a valid answer is to the optimum"),
}


def style_figures(report: OptimisationReport, order: Sequence[str], href: Callable[[str], str]) -> list[Figure]:
    """Return every measure by style, with intervals."""
    figures = []
    parts = {arm.arm: arm.overall for arm in report.arms}
    for measure, how in METRICS.items():
        cells = {arm: parts[arm].cells[measure] for arm in order if measure in parts[arm].cells}
        rows = [ForestRow(arm, *_drawn(cell, how), href=href(arm)) for arm, cell in cells.items()]
        if rows:
            html = safe(small_forest(rows, name="Arm", number_name=how.name, within=(0.0, how.high)))
            figures.append(Figure(how.name, html, how.words or _sentence(gap_words(report))))
    return figures


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def style_kinds(report: OptimisationReport, by: str, order: Sequence[str]) -> list[Figure]:
    """Return gap and feasibility of the best styles by one attribute of the problems."""
    kinds, arms = report.kinds(by), list(order[:_MOST_ARMS])
    found = {arm.arm: arm for arm in report.arms}
    figures = []
    for measure in ("normalised_gap", "feasible"):
        how = METRICS[measure]
        overall = [_times(found[arm].overall.mean(measure), how) for arm in arms]
        rows = []
        for kind in kinds:
            cells = [found[arm].by[by][kind].cells.get(measure) if kind in found[arm].by[by] else None for arm in arms]
            count = max((cell.problems for cell in cells if cell is not None), default=0)
            shown = [_cell(cell, mean, how) for cell, mean in zip(cells, overall, strict=True)]
            rows.append(TrellisRow(kind_words(by, kind), str(count), shown))
        html = safe(trellis(rows, arms, overall, name=by, within=(0.0, how.high)))
        figures.append(Figure(how.name, html, how.words or _sentence(gap_words(report))))
    return figures if len(kinds) > 1 else []


def effect_figure(report: OptimisationReport) -> Markup:
    """Return the difference of every pair by the composite: on all problems, and by difficulty."""
    rows = []
    for pair in (report.comparisons.pairs if report.comparisons else [])[:_MOST_PAIRS]:
        scale = Scale(pair.metric)
        parts: list[tuple[str, Comparison | KindDifference]] = [
            (ALL, pair),
            *(
                (one.value, one)
                for one in sorted(pair.groups, key=lambda one: in_order(one.value))
                if one.by == "difficulty"
            ),
        ]
        for name, part in parts:
            rows.append(
                ForestRow(
                    f"{pair.a} − {pair.b}: {name}",
                    part.difference,
                    part.ci95,
                    signs(scale.signed(part.difference)),
                    interval_words(part.ci95, pair.metric) if part.ci95 else "",
                    rank=str(part.count),
                    tone=TONES[part.verdict],
                )
            )
    return safe(small_forest(rows, name="Pair", number_name="Difference", zero=0.0)) if rows else safe("")


def answers_figure(report: OptimisationReport, order: Sequence[str], href: Callable[[AnswerGap], str]) -> Markup:
    """Return every answer between the optimum and chance, a row for each style."""
    rows = []
    for arm in order[:_MOST_ARMS]:
        own = [answer for answer in report.answers if answer.arm == arm]
        spread = own[:: max(1, len(own) // _MOST_DOTS)]
        dots = [
            (answer.gap, answer.feasible is not False, f"{answer.problem}|gap {answer.gap:.3f}", href(answer))
            for answer in spread
        ]
        near = sum(answer.gap <= _NEAR and answer.feasible is not False for answer in own)
        rows.append(DotRow(arm, dots, f"{near} of {len(own)} within 1 %"))
    return safe(dot_rows(rows, name="Arm", number_name="Near the optimum", within=(0.0, 1.0)))


def _cell(mean: Cell | None, overall: float | None, how: DrawnMeasure) -> TrellisCell:
    if mean is None or mean.mean is None:
        return TrellisCell(None, None, "–")
    drawn = _drawn(mean, how)
    bounds = drawn[1]
    tone: Tone = ""
    if bounds is not None and overall is not None:
        above, below = _LEAD if how.higher_is_better else _LEAD[::-1]
        tone = above if bounds[0] > overall else below if bounds[1] < overall else ""
    return TrellisCell(*drawn, tone)


def _drawn(mean: Cell, how: DrawnMeasure) -> tuple[float | None, Interval | None, str, str]:
    """Return a mean and its interval on the axis, and both as texts."""

    def text(value: float) -> str:
        return shown_number(how.factor * value, how.digits)

    return (
        _times(mean.mean, how),
        None if mean.ci95 is None else (how.factor * mean.ci95[0], how.factor * mean.ci95[1]),
        "–" if mean.mean is None else text(mean.mean),
        "" if mean.ci95 is None else f"{text(mean.ci95[0])} to {text(mean.ci95[1])}",
    )


def _times(value: float | None, how: DrawnMeasure) -> float | None:
    return None if value is None else how.factor * value


def answer_gaps(answers: Mapping[str, Sequence[tuple[TrialRecord, str]]]) -> Markup:
    """Return the gap of every answer to a problem, by arm; each answer is given with its address."""
    rows = []
    for arm, own in answers.items():
        dots = []
        for trial, href in own:
            gap = trial.metrics.get("normalised_gap")
            if gap is not None:
                feasible = bool(trial.metrics.get("feasible"))
                tip = f"{arm}|gap {gap:.3f}|{'feasible' if feasible else 'not feasible'}"
                dots.append((gap, feasible, tip, href))
        feasible_count = sum(filled for _, filled, _, _ in dots)
        rows.append(DotRow(arm, dots, f"{feasible_count} of {len(own)} feasible"))
    return safe(dot_rows(rows, name="Arm", number_name="", within=(0.0, 1.0)))
