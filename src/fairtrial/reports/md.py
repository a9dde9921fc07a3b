"""Markdown: the summary of a run, for a pull request or a note."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import IO

from fairtrial.analyse import Run
from fairtrial.analyse.compare import compared
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.gate import Gate
from fairtrial.analyse.kind_means import KindMeans, by_kind
from fairtrial.analyse.lines import arm_lines, notes
from fairtrial.analyse.summary import RunSummary
from fairtrial.analyse.wording.comparisons import brief_lines, pair_cells, pair_columns, sentence
from fairtrial.analyse.wording.comparisons import subject_line as comparison_headline
from fairtrial.analyse.wording.kinds import NOTE, kind_tables, more_text
from fairtrial.analyse.wording.runs import arm_cells, arm_columns, failure_line, headline, reporting_line
from fairtrial.core.text import one_line

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#])")


def write(run: Run, file: IO[str]) -> None:
    """Write the summary of a run."""
    file.write(render(run.summary(), compared(run), by_kind(run)))


def render(summary: RunSummary, compared_arms: Comparisons | None = None, kinds: KindMeans | None = None) -> str:
    """Return the summary as Markdown, with the verdicts of the comparisons and the means by kind of case if given."""
    columns = arm_columns(summary)
    lines = [f"# {_plain(summary.suite)}", "", _plain(headline(summary)), ""]
    lines += [*_table(columns, [arm_cells(summary, arm) for arm in summary.arms]), ""]
    for arm in summary.arms:
        lines.append(f"- {_plain(reporting_line(arm))}")
        lines += [f"  - {_plain(line)}" for line in arm_lines(summary, arm)]
    if run_notes := notes(summary):
        lines += ["", *(f"> {_plain(note)}" for note in run_notes)]
    if kinds is not None:
        lines += _kinds(summary, kinds)
    if compared_arms is not None:
        lines += ["", "## Comparison", "", _plain(comparison_headline(compared_arms)), ""]
        lines += _table(pair_columns(compared_arms), [pair_cells(pair) for pair in compared_arms.pairs])
        lines.append("")
        for pair in compared_arms.pairs:
            lines.append(f"- {_plain(sentence(pair, compared_arms.margin))}")
            lines += [f"  - {_plain(line.strip())}" for line in brief_lines(pair)]
        lines += ["", *(f"> {_plain(note)}" for note in compared_arms.notes)] if compared_arms.notes else []
    if summary.failures:
        lines += ["", "## Failures", "", *(f"- {_plain(failure_line(failure))}" for failure in summary.failures)]
    lines += ["", f"Dataset SHA-256: `{summary.dataset_sha256}`", ""]
    return "\n".join(lines)


def _kinds(summary: RunSummary, kinds: KindMeans) -> list[str]:
    """Return the lines with the means by kind of case; none if no kind divides the cases."""
    tables = kind_tables(kinds, [arm.arm for arm in summary.arms])
    lines = ["", "## By kind of case", "", NOTE] if tables else []
    for table in tables:
        rows = [[row.kind, row.cases, *row.cells] for row in table.rows]
        lines += ["", *_table([table.by, "cases", *map(_plain, table.arms)], rows)]
        lines += ["", more_text(table)] if table.more else []
    return lines


def render_gate(gate: Gate) -> str:
    """Return the result of a gate as a Markdown table."""
    cells = [(check.name, check.arm, check.result, check.message) for check in gate.checks]
    lines = [f"# fairtrial gate: {gate.result}", "", *_table(("check", "arm", "result", ""), cells)]
    lines += ["", *(f"> {_plain(note)}" for note in gate.notes)] if gate.notes else []
    against = f" against {', '.join(gate.against)}" if gate.against else ""
    return "\n".join([*lines, "", f"run {', '.join(gate.run_ids)}{against}", ""])


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    head = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return head + ["| " + " | ".join(map(_plain, cells)) + " |" for cells in rows]


def _plain(text: str) -> str:
    """Return a text on one line with all Markdown escaped."""
    return _MARKUP.sub(r"\\\1", one_line(text))
