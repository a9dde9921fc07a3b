"""Prompt styles on optimisation problems: gaps and rates with their intervals, and every answer to one problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from fairtrial.analyse.figures.leaders import Figure
from fairtrial.analyse.optimisation import StyleMeans
from fairtrial.analyse.run import TrialRecord
from fairtrial.charts import DotRow, ForestRow, TrellisCell, TrellisRow, dot_rows, small_forest, trellis
from fairtrial.charts.marks import Interval, Tone
from fairtrial.charts.svg import safe
from fairtrial.stats import Aggregate

_MOST_ARMS = 6  # columns that a page has room for


class Shown(NamedTuple):
    """How a metric is shown: its name, the factor to its axis, digits, unit and what it means."""

    name: str
    factor: float
    digits: int
    high: float
    words: str
    higher_is_better: bool = True


METRICS = {
    "normalised_gap": Shown(
        "Gap", 1.0, 2, 1.0, "0 is the optimum, 1 is no better than random points", higher_is_better=False
    ),
    "feasible": Shown("Feasible", 100.0, 0, 100.0, "Percent of answers that keep every constraint"),
    "instruction_following": Shown("Followed", 100.0, 0, 100.0, "Percent of answers in the format that was asked for"),
    "quality": Shown("Quality", 1.0, 1, 100.0, "0–100: how close a valid answer is to the optimum"),
}


def style_figures(means: StyleMeans, order: Sequence[str], href: Callable[[str], str]) -> list[Figure]:
    """Return every metric by style, with intervals."""
    figures = []
    for metric, how in METRICS.items():
        found = means.means[metric]
        rows = [_row(arm, found[arm], how, href(arm)) for arm in order if arm in found]
        if rows:
            html = safe(small_forest(rows, name="Arm", number_name=how.name, within=(0.0, how.high)))
            figures.append(Figure(how.name, html, how.words))
    return figures


def style_kinds(means: StyleMeans, by: str, order: Sequence[str]) -> list[Figure]:
    """Return gap and feasibility of the best styles by one attribute of the problems."""
    arms = list(order[:_MOST_ARMS])
    figures = []
    for metric in ("normalised_gap", "feasible"):
        how, found = METRICS[metric], means.by[metric][by]
        overall = [_times(means.means[metric][arm].mean, how) if arm in means.means[metric] else None for arm in arms]
        rows = [
            TrellisRow(
                kind,
                str(means.cases[by][kind]),
                [_cell(found[kind].get(arm), mean, how) for arm, mean in zip(arms, overall, strict=True)],
            )
            for kind in sorted(found, key=_in_order)
        ]
        html = safe(trellis(rows, arms, overall, name=by, within=(0.0, how.high)))
        figures.append(Figure(how.name, html, how.words))
    return figures if len(means.cases[by]) > 1 else []


def _row(arm: str, mean: Aggregate, how: Shown, href: str) -> ForestRow:
    return ForestRow(
        arm,
        _times(mean.mean, how),
        _interval(mean.ci95, how),
        _words(mean.mean, how),
        _bounds(mean.ci95, how),
        href=href,
    )


def _cell(mean: Aggregate | None, overall: float | None, how: Shown) -> TrellisCell:
    if mean is None or mean.mean is None:
        return TrellisCell(None, None, "–")
    bounds, tone = _interval(mean.ci95, how), ""
    if bounds is not None and overall is not None:
        above, below = ("lead", "behind") if how.higher_is_better else ("behind", "lead")
        tone = above if bounds[0] > overall else below if bounds[1] < overall else ""
    shown: Tone = tone  # type: ignore[assignment]
    return TrellisCell(_times(mean.mean, how), bounds, _words(mean.mean, how), _bounds(mean.ci95, how), shown)


def _times(value: float | None, how: Shown) -> float | None:
    return None if value is None else how.factor * value


def _interval(bounds: Interval | None, how: Shown) -> Interval | None:
    return None if bounds is None else (how.factor * bounds[0], how.factor * bounds[1])


def _words(value: float | None, how: Shown) -> str:
    return "–" if value is None else f"{how.factor * value:.{how.digits}f}"


def _bounds(bounds: Interval | None, how: Shown) -> str:
    return "" if bounds is None else f"{_words(bounds[0], how)} to {_words(bounds[1], how)}"


def _in_order(kind: str) -> tuple[int, float, str]:
    """Sort difficulties as they rise, sizes as numbers, and anything else by name."""
    levels = {"easy": 0, "medium": 1, "hard": 2}
    digits = "".join(letter for letter in kind if letter.isdigit())
    return levels.get(kind, 3), float(digits) if digits else 0.0, kind


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
