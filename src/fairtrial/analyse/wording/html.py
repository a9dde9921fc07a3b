"""Results as notebooks show them: the words and cells of the terminal, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairtrial.core.html import Bar, block, figure, heading, lines, table

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Comparison, Comparisons
    from fairtrial.analyse.gate import Gate
    from fairtrial.analyse.items import CaseAnalysis
    from fairtrial.analyse.kind_means import KindMeans
    from fairtrial.analyse.pairs import PairsSummary
    from fairtrial.analyse.planning import PairPower, Power, Variance
    from fairtrial.analyse.rank import Ranking
    from fairtrial.analyse.run import Run
    from fairtrial.analyse.series import RunSeries

_MOST = 30  # rows of a table: a notebook is read, not searched


def run_html(run: Run) -> str:
    """Show a run: its arms, their intervals, and what to know about them."""
    from fairtrial.analyse.lines import notes
    from fairtrial.analyse.summary import ranked
    from fairtrial.analyse.wording.runs import arm_cells, arm_columns, failure_line, headline

    summary = run.summary()
    arms = ranked(summary.arms)[:_MOST]
    bars = [Bar(arm.arm, arm.aggregate.mean, arm.aggregate.ci95) for arm in arms]
    return block(
        heading(headline(summary)),
        table(arm_columns(summary), (arm_cells(summary, arm) for arm in arms)),
        figure(bars, "Mean score of every arm, with its 95% interval"),
        lines([*notes(summary), *map(failure_line, summary.failures)]),
    )


def series_html(series: RunSeries) -> str:
    """Show a series: every arm over all its runs."""
    from fairtrial.analyse.series_summary import SERIES_COLUMNS, series_cells, summarise_series

    summary = summarise_series(series)
    cells = [series_cells(arm, multi) for arm, multi in summary.arms.items()]
    return block(heading(f"series {series.id}: {len(series)} runs"), table(SERIES_COLUMNS, cells))


def comparisons_html(comparisons: Comparisons) -> str:
    """Show comparisons: a sentence and a row for every pair."""
    from fairtrial.analyse.wording.comparisons import pair_cells, pair_columns, sentence, subject_line

    pairs = comparisons.pairs[:_MOST]
    return block(
        heading(subject_line(comparisons)),
        table(pair_columns(comparisons), map(pair_cells, pairs)),
        lines([*(sentence(pair, comparisons.margin) for pair in pairs), *comparisons.notes]),
    )


def comparison_html(pair: Comparison) -> str:
    """Show one comparison."""
    from fairtrial.analyse.wording.comparisons import brief_lines, sentence

    return block(heading(sentence(pair)), lines(brief_lines(pair)))


def ranking_html(ranking: Ranking) -> str:
    """Show a ranking."""
    from fairtrial.analyse.wording.ranks import COLUMNS, ranked_cells, ranking_headline, style_line

    rows = [ranked_cells(place, ranking.metric) for place in ranking.places]
    return block(
        heading(ranking_headline(ranking)),
        table(COLUMNS, rows),
        lines([*map(style_line, ranking.style), *ranking.notes]),
    )


def gate_html(gate: Gate) -> str:
    """Show a gate: its result and every check."""
    rows = [(check.arm, check.name, check.result, check.message) for check in gate.checks]
    return block(heading(f"gate {gate.result}"), table(("arm", "check", "result", "why"), rows), lines(gate.notes))


def power_html(power: Power) -> str:
    """Show how many cases every pair needs."""
    return block(*(_pair_power(pair, 1 - power.beta) for pair in power.pairs[:_MOST]))


def _pair_power(pair: PairPower, power: float) -> str:
    from fairtrial.analyse.wording.planning import power_line, power_table

    columns, rows = power_table(pair)
    return heading(f"{pair.a} against {pair.b}") + table(columns, rows) + lines([power_line(pair, power)])


def variance_html(variance: Variance) -> str:
    """Show where the uncertainty of every arm comes from."""
    from fairtrial.analyse.wording.planning import VARIANCE_COLUMNS, variance_cells

    rows = map(variance_cells, variance.arms)
    advice = [f"{arm.label}: {arm.advice}" for arm in variance.arms]
    return block(heading("Sources of the uncertainty of each mean"), table(VARIANCE_COLUMNS, rows), lines(advice))


def kinds_html(kinds: KindMeans) -> str:
    """Show means by kind of case."""
    from fairtrial.analyse.wording.kinds import NOTE, kind_tables

    arms: Sequence[str] = list(
        dict.fromkeys(arm for by in kinds.means.values() for means in by.values() for arm in means)
    )
    parts = [
        table((one.by, "cases", *one.arms), ([row.kind, row.cases, *row.cells] for row in one.rows))
        for one in kind_tables(kinds, arms, most=_MOST, whole=True)
    ]
    return block(*parts, lines([NOTE]))


def pairs_html(summary: PairsSummary) -> str:
    """Show which arms judges prefer."""
    from fairtrial.analyse.wording.judges import order_line, pair_cells

    columns = ("arm", "against", "wins", "ties", "losses", "win rate", "95 % CI")
    failures = [f"{count} × no verdict: {message}" for message, count in summary.failures]
    return block(table(columns, map(pair_cells, summary.pairs)), lines([*map(order_line, summary.judges), *failures]))


def cases_html(analysis: CaseAnalysis) -> str:
    """Show which cases are worth having."""
    from fairtrial.analyse.wording.cases import case_headline, case_lines, subset_lines

    return block(heading(case_headline(analysis)), lines([*case_lines(analysis), *subset_lines(analysis)]))
