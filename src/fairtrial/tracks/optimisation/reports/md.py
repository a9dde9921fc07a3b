"""Markdown: the report for a note or a pull request; whatever a model or a user named is escaped."""

from __future__ import annotations

from fairtrial.reports.markdown import plain, table
from fairtrial.tracks.optimisation.analysis import OptimisationReport
from fairtrial.tracks.optimisation.methods import bibtex, citation, methods
from fairtrial.tracks.optimisation.style_tables import DIFFERENCE_COLUMNS, differences, format_table
from fairtrial.tracks.optimisation.words import (
    MeasuredTable,
    composite_words,
    difference_note,
    headline,
    interaction_lines,
    length_lines,
    measured_tables,
    second_opinion,
    warnings,
)


def render(report: OptimisationReport) -> str:
    """Return the report as Markdown."""
    report = report.shown()
    lines = [f"# {plain(report.suite)}", "", f"**{plain(headline(report))}**", ""]
    lines += [plain(composite_words(report)), plain(second_opinion(report)), ""]
    lines += [f"> {plain(line)}" for line in warnings(report)]
    for one in measured_tables(report):
        if one.groups:
            lines += ["", f"## {one.title}", "", one.note, "", *_measured(one), ""]
            lines += [f"- {plain(note)}" for note in one.notes]
    if rows := differences(report):
        lines += ["", "## Differences", "", difference_note(report), "", *table(list(DIFFERENCE_COLUMNS), rows), ""]
        lines += [f"- {plain(line)}" for line in interaction_lines(report)]
    columns, steps = format_table(report)
    if steps:
        lines += ["", "## The format, step by step", "", "Each step needs those before it.", ""]
        lines += table(columns, steps)
    lines += ["", "## Methods", "", *(f"{plain(part)}\n" for part in (*methods(report), *length_lines(report)))]
    return "\n".join([*lines, "## Citation", "", plain(citation(report)), "", "```bibtex", bibtex(report), "```", ""])


def _measured(one: MeasuredTable) -> list[str]:
    rows = [
        [
            group.title,
            row.arm,
            row.answers,
            *(one.between.join(filter(None, (cell.main, cell.interval))) for cell in row.cells),
            *filter(None, [row.median_gap]),
        ]
        for group in one.groups
        for row in group.rows
    ]
    return table(["problems", "style", "answers", *one.columns], rows)
