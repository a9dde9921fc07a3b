"""Markdown: the summary of a run, for a pull request or a note."""

from __future__ import annotations

from typing import IO

from fairtrial.analyse.compare import compared
from fairtrial.analyse.comparison import Comparison, Comparisons
from fairtrial.analyse.gate import Gate
from fairtrial.analyse.kind_means import KindMeans, by_kind
from fairtrial.analyse.leaderboard import Leaderboard, run_leaderboard
from fairtrial.analyse.run import Run
from fairtrial.analyse.summary import RunSummary, ranked
from fairtrial.analyse.tool_report import ToolReport, has_offers, tool_report
from fairtrial.core.formatting import interval_words, signs
from fairtrial.present.arms import arm_table
from fairtrial.present.words.arm_notes import arm_lines, notes
from fairtrial.present.words.comparisons import brief_lines, pair_cells, pair_columns, subject_line
from fairtrial.present.words.kinds import NOTE, kind_tables, more_text, report_text
from fairtrial.present.words.leaderboards import headline, settle_words
from fairtrial.present.words.runs import failure_line
from fairtrial.present.words.runs import headline as run_headline
from fairtrial.reports.markdown import plain, table
from fairtrial.reports.tools import section as tools_section


def write(run: Run, file: IO[str]) -> None:
    """Write the summary of a run."""
    tools = tool_report(run) if has_offers(run) else None
    file.write(render(run.summary(), compared(run), by_kind(run), run_leaderboard(run), tools))


def render(
    summary: RunSummary,
    compared_arms: Comparisons | None = None,
    kinds: KindMeans | None = None,
    board: Leaderboard | None = None,
    tools: ToolReport | None = None,
) -> str:
    """Return the summary as Markdown; with who leads, every pair, means by kind of case and tools if they are given."""
    lines = [f"# {plain(summary.suite)}", ""]
    if board is not None:
        lines += [f"**{plain(headline(board))}**", ""]
        lines += [plain(settle), ""] if (settle := settle_words(board)) else []
    lines += [plain(run_headline(summary)), "", *_arms(summary, board)]
    for arm in summary.arms:
        if own := arm_lines(summary, arm):
            lines += ["", f"{plain(arm.arm)}:", "", *(f"- {plain(line)}" for line in own)]
    if run_notes := notes(summary):
        lines += ["", *(f"> {plain(note)}" for note in run_notes)]
    if compared_arms is not None:
        lines += _pairs(compared_arms)
    if kinds is not None:
        lines += _kinds(summary, kinds)
    if tools is not None:
        lines += ["", *tools_section(tools, "Do the tools help?")]
    if summary.failures:
        lines += ["", "## Failures", "", *(f"- {plain(failure_line(failure))}" for failure in summary.failures)]
    lines += ["", f"Dataset SHA-256: `{summary.dataset_sha256}`", ""]
    return "\n".join(lines)


def _arms(summary: RunSummary, board: Leaderboard | None) -> list[str]:
    found = arm_table(summary.arms, board)
    return table([column.long_name for column in found.columns], found.cells)


def _pairs(comparisons: Comparisons) -> list[str]:
    """Return the lines about every pair: the numbers in a table, and below it what only words can say."""
    lines = ["", "## Every pair", "", plain(subject_line(comparisons)), ""]
    columns = ["95 % CI" if name == "95% CI" else name for name in pair_columns(comparisons)]
    lines += table(columns, [_pair_cells(pair) for pair in comparisons.pairs])
    for pair in comparisons.pairs:
        if brief := brief_lines(pair):
            lines += ["", f"{plain(pair.a)} against {plain(pair.b)}:", ""]
            lines += [f"- {plain(line.strip())}" for line in brief]
    return [*lines, *(["", *(f"> {plain(note)}" for note in comparisons.notes)] if comparisons.notes else [])]


def _pair_cells(pair: Comparison) -> list[str]:
    cells = pair_cells(pair)
    margin = None if pair.equivalence is None else pair.equivalence.margin
    bounds = "–" if pair.ci95 is None else interval_words(pair.ci95, pair.metric, margin)
    return [*cells[:2], signs(cells[2]), bounds, *cells[4:]]


def _kinds(summary: RunSummary, kinds: KindMeans) -> list[str]:
    """Return the lines with the means by kind of case; none if no kind divides the cases."""
    tables = kind_tables(kinds, [arm.arm for arm in ranked(summary.arms)], cell=report_text)
    lines = ["", "## By kind of case", "", NOTE] if tables else []
    for one in tables:
        rows = [[row.kind, row.cases, *row.cells] for row in one.rows]
        lines += ["", *table([one.by, "cases", *map(plain, one.arms)], rows)]
        lines += ["", more_text(one)] if one.more else []
    return lines


def render_gate(gate: Gate) -> str:
    """Return the result of a gate as a Markdown table."""
    cells = [(check.name, check.arm, check.result, check.message) for check in gate.checks]
    lines = [f"# fairtrial gate: {gate.result}", "", *table(("check", "arm", "result", ""), cells)]
    if gate.flaky:
        flaky = ", ".join(f"{one.case} ({one.passed} of {one.answers})" for one in gate.flaky)
        lines += ["", f"Flaky without any change: {plain(flaky)}"]
    lines += ["", f"In quarantine, not counted: {plain(', '.join(gate.quarantined))}"] if gate.quarantined else []
    lines += ["", f"{plain(gate.compared_with)}."] if gate.compared_with else []
    lines += ["", f"{gate.method}."] if gate.method else []
    lines += ["", *(f"> {plain(note)}" for note in gate.notes)] if gate.notes else []
    against = f" against {', '.join(gate.against)}" if gate.against else ""
    return "\n".join([*lines, "", f"run {', '.join(gate.run_ids)}{against}", ""])
