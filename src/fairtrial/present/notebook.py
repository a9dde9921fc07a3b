"""Results as notebooks show them: the charts of the web page, or the words and cells of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import msgspec

from fairtrial.analyse.comparison import Comparison, Comparisons
from fairtrial.analyse.gate_result import Gate
from fairtrial.analyse.items import CaseAnalysis
from fairtrial.analyse.kind_means import KindMeans
from fairtrial.analyse.leaderboard import Leaderboard, comparison_leaderboard, run_leaderboard
from fairtrial.analyse.pairs import PairsSummary
from fairtrial.analyse.planning import PairPower, Power
from fairtrial.analyse.rank import Ranking
from fairtrial.analyse.run import Run, RunSeries
from fairtrial.analyse.score_table import SCORE, read_scores, sources_of
from fairtrial.analyse.series_summary import summarise_series
from fairtrial.analyse.summary import summary_prices
from fairtrial.analyse.variance import Variance
from fairtrial.core.formatting import number
from fairtrial.judging.calibration import Calibration
from fairtrial.present.arms import arm_table
from fairtrial.present.charts import part
from fairtrial.present.charts.svg import tag
from fairtrial.present.figures import kind_differences, leaders, pair_matrix, series_figure
from fairtrial.present.notebook_table import block, heading, lines, table
from fairtrial.present.words.arm_notes import notes
from fairtrial.present.words.cases import case_headline, case_lines, subset_lines
from fairtrial.present.words.changes import comparison_headline
from fairtrial.present.words.comparisons import brief_lines, pair_cells, pair_columns, sentence, subject_line
from fairtrial.present.words.judges import order_line
from fairtrial.present.words.judges import pair_cells as judged_cells
from fairtrial.present.words.kinds import NOTE, kind_tables
from fairtrial.present.words.leaderboards import headline, settle_words
from fairtrial.present.words.planning import (
    VARIANCE_COLUMNS,
    looks_line,
    looks_table,
    power_line,
    power_table,
    variance_cells,
)
from fairtrial.present.words.prices import price_words
from fairtrial.present.words.ranks import COLUMNS, ranked_cells, ranking_headline, style_line
from fairtrial.present.words.runs import failure_line
from fairtrial.present.words.runs import headline as run_headline

_MOST = 30  # rows of a table: a notebook is read, not searched


@singledispatch
def as_html(result: Any) -> str:
    """Show a result."""
    raise TypeError(f"no one has said how to show a {type(result).__name__}")


@as_html.register
def run_html(run: Run) -> str:
    """Show a run: who leads, every arm with its interval, and what to know about them."""
    summary = run.summary()
    leaderboard = run_leaderboard(run, summary_prices(summary))
    forest = leaders(first_places(leaderboard, _MOST), {arm.arm: arm for arm in summary.arms})
    hidden = len(leaderboard.places) - _MOST
    said = [
        *([f"{hidden} more arms are not shown."] if hidden > 0 else []),
        *filter(None, [settle_words(leaderboard), price_words(leaderboard)]),
        *notes(summary),
        *map(failure_line, summary.failures),
        run_headline(summary),
    ]
    numbers = arm_table(summary.arms, leaderboard)
    listed = table([column.long_name for column in numbers.columns], numbers.cells[:_MOST], wraps=False)
    folded = tag("details", tag("summary", "All numbers"), listed, class_="body", style="overflow-x:auto")
    return part(headline(leaderboard), forest, folded, says=said)


def first_places(leaderboard: Leaderboard, most: int) -> Leaderboard:
    """Return the leaderboard with its first arms only."""
    return msgspec.structs.replace(leaderboard, places=leaderboard.places[:most])


@as_html.register
def series_html(series: RunSeries) -> str:
    """Show a series: every arm over all its runs."""
    scores = read_scores(sources_of(series))
    like = {arm.arm.name: scores.aggregate(arm) for arm in scores.arms if arm.values.get(SCORE)}
    chart = series_figure(summarise_series(series), like)
    said = "A dot per run. Band: these cases, asked again. Line: cases like these, the one to decide by."
    return part(f"Series {series.id}: {len(series)} runs", chart, says=[said])


@as_html.register
def comparisons_html(comparisons: Comparisons) -> str:
    """Show comparisons: who leads, every pair as a matrix, or one row for every pair."""
    leaderboard = comparison_leaderboard(comparisons)
    if leaderboard is None or len(leaderboard.places) < 2:
        pairs = comparisons.pairs[:_MOST]
        verdicts = [sentence(pair, comparisons.margin) for pair in pairs]
        return block(
            heading(comparison_headline(comparisons)),
            table(pair_columns(comparisons), map(pair_cells, pairs)),
            lines([*verdicts, *comparisons.notes, subject_line(comparisons)]),
        )
    several = len(leaderboard.places) > 2 and leaderboard.every_pair
    chart = tag("div", pair_matrix(leaderboard), class_="body") if several else leaders(leaderboard, {})
    explained = ["Row's lead over column."] if several else []
    settled = [settle_words(leaderboard), price_words(leaderboard)]
    said = filter(None, [*explained, *settled, *comparisons.notes, subject_line(comparisons)])
    return part(comparison_headline(comparisons), chart, says=said)


@as_html.register
def comparison_html(pair: Comparison) -> str:
    """Show one comparison, and how the difference differs by kind of case."""
    if not pair.groups:
        return block(heading(sentence(pair)), lines(brief_lines(pair)))
    return part(sentence(pair), *(figure.html for figure in kind_differences(pair)), says=brief_lines(pair))


@as_html.register
def ranking_html(ranking: Ranking) -> str:
    """Show a ranking."""
    rows = [ranked_cells(place, ranking.metric) for place in ranking.places]
    return block(
        heading(ranking_headline(ranking)),
        table(COLUMNS, rows),
        lines([*map(style_line, ranking.style), *ranking.notes]),
    )


@as_html.register
def gate_html(gate: Gate) -> str:
    """Show a gate: its result and every check."""
    rows = [(check.arm, check.name, check.result, check.message) for check in gate.checks]
    notes = [
        *([gate.compared_with] if gate.compared_with else []),
        *gate.notes,
        *([f"{gate.method}."] if gate.method else []),
    ]
    return block(heading(f"gate {gate.result}"), table(("arm", "check", "result", "why"), rows), lines(notes))


@as_html.register
def power_html(power: Power) -> str:
    """Show how many cases every pair needs."""
    return block(*(_pair_power(pair, 1 - power.beta) for pair in power.pairs[:_MOST]))


def _pair_power(pair: PairPower, power: float) -> str:
    shown = heading(f"{pair.a} against {pair.b}") + table(*power_table(pair)) + lines([power_line(pair, power)])
    if not pair.with_looks:
        return shown
    return shown + lines([looks_line(pair.with_looks[0].planned, power)]) + table(*looks_table(pair.with_looks))


@as_html.register
def variance_html(variance: Variance) -> str:
    """Show where the uncertainty of every arm comes from."""
    rows = map(variance_cells, variance.arms)
    advice = [f"{arm.label}: {arm.advice}" for arm in variance.arms]
    return block(heading("Sources of the uncertainty of each mean"), table(VARIANCE_COLUMNS, rows), lines(advice))


@as_html.register
def kinds_html(kinds: KindMeans) -> str:
    """Show means by kind of case."""
    arms: Sequence[str] = list(
        dict.fromkeys(arm for by in kinds.means.values() for means in by.values() for arm in means)
    )
    parts = [
        table((one.by, "cases", *one.arms), ([row.kind, row.cases, *row.cells] for row in one.rows))
        for one in kind_tables(kinds, arms, most=_MOST, whole=True)
    ]
    return block(*parts, lines([NOTE]))


@as_html.register
def pairs_html(summary: PairsSummary) -> str:
    """Show which arms judges prefer."""
    columns = ("arm", "against", "wins", "ties", "losses", "win rate", "95 % CI")
    failures = [f"{count} × no verdict: {message}" for message, count in summary.failures]
    return block(table(columns, map(judged_cells, summary.pairs)), lines([*map(order_line, summary.judges), *failures]))


@as_html.register
def cases_html(analysis: CaseAnalysis) -> str:
    """Show which cases are worth having."""
    return block(heading(case_headline(analysis)), lines([*case_lines(analysis), *subset_lines(analysis)]))


@as_html.register
def calibration_html(calibration: Calibration) -> str:
    """Show how a judge scored answers whose scores are known."""
    rows = [
        (sample.id, *(number(one, 0) for one in (sample.expected, sample.actual, sample.error)), sample.notes[:200])
        for sample in calibration.samples
    ]
    head = f"{calibration.summary.judge}: {calibration.rating}. {calibration.recommendation}"
    return block(heading(head), table(("sample", "right", "given", "error", "reason"), rows))
