"""Markdown: the report for a note or a pull request; whatever a model or a user named is escaped."""

from __future__ import annotations

from fairtrial.analyse.optimisation import OptimisationReport
from fairtrial.analyse.wording.methods import bibtex, citation, methods
from fairtrial.analyse.wording.optimisation import (
    DIFFERENCE_NOTE,
    MEASURES,
    TABLE_NOTE,
    composite_words,
    differences,
    format_table,
    headline,
    interaction_lines,
    length_lines,
    measure_notes,
    second_opinion,
    style_table,
    warnings,
)
from fairtrial.reports.markdown import plain, table


def render(report: OptimisationReport) -> str:
    """Return the report as Markdown."""
    lines = [f"# {plain(report.suite)}", "", f"**{plain(headline(report))}**", ""]
    lines += [plain(composite_words(report)), plain(second_opinion(report)), ""]
    lines += [f"> {plain(line)}" for line in warnings(report)]
    lines += ["", "## Every style", "", TABLE_NOTE, "", *_styles(report), ""]
    lines += [f"- {plain(note)}" for note in measure_notes(report)]
    if rows := differences(report):
        columns = ["problems", "by", "style", "against", "difference", "95 % CI", "p (Holm)", "count", "verdict"]
        lines += ["", "## Differences", "", DIFFERENCE_NOTE, "", *table(columns, rows), ""]
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
