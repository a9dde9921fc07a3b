"""Markdown: the report for a note or a pull request; whatever a model or a user named is escaped."""

from __future__ import annotations

from fairtrial.reports.markdown import plain, table
from fairtrial.tracks.optimisation.analysis import OptimisationReport
from fairtrial.tracks.optimisation.methods import bibtex, citation, methods
from fairtrial.tracks.optimisation.words import (
    DIFFERENCE_COLUMNS,
    MEASURES,
    composite_words,
    difference_note,
    differences,
    format_table,
    gap_measures,
    gap_note,
    gap_notes,
    gap_table,
    headline,
    interaction_lines,
    length_lines,
    measure_notes,
    second_opinion,
    style_table,
    table_note,
    warnings,
)


def render(report: OptimisationReport) -> str:
    """Return the report as Markdown."""
    report = report.shown()
    lines = [f"# {plain(report.suite)}", "", f"**{plain(headline(report))}**", ""]
    lines += [plain(composite_words(report)), plain(second_opinion(report)), ""]
    lines += [f"> {plain(line)}" for line in warnings(report)]
    lines += ["", "## Every style", "", table_note(report), "", *_styles(report), ""]
    lines += [f"- {plain(note)}" for note in measure_notes(report)]
    if gap_measures(report):
        lines += ["", "## Gaps and distances", "", gap_note(report), "", *_gaps(report), ""]
        lines += [f"- {plain(note)}" for note in gap_notes(report)]
    if rows := differences(report):
        lines += ["", "## Differences", "", difference_note(report), "", *table(list(DIFFERENCE_COLUMNS), rows), ""]
        lines += [f"- {plain(line)}" for line in interaction_lines(report)]
    columns, steps = format_table(report)
    if steps:
        lines += ["", "## The format, step by step", "", "Each step needs those before it.", ""]
        lines += table(columns, steps)
    lines += ["", "## Methods", "", *(f"{plain(part)}\n" for part in (*methods(report), *length_lines(report)))]
    return "\n".join([*lines, "## Citation", "", plain(citation(report)), "", "```bibtex", bibtex(report), "```", ""])


def _styles(report: OptimisationReport) -> list[str]:
    columns = ["problems", "style", "answers", *(measure.name for measure in MEASURES), "median gap"]
    rows = [
        [
            group.title,
            row.arm,
            row.answers,
            *(f"{one.main} {one.interval}".strip() for one in row.cells),
            row.median_gap,
        ]
        for group in style_table(report)
        for row in group.rows
    ]
    return table(columns, rows)


def _gaps(report: OptimisationReport) -> list[str]:
    columns = ["problems", "style", "answers", *(measure.name for measure in gap_measures(report))]
    rows = [
        [group.title, row.arm, row.answers, *(", ".join(filter(None, (one.main, one.interval))) for one in row.cells)]
        for group in gap_table(report)
        for row in group.rows
    ]
    return table(columns, rows)
