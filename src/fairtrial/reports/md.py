"""Markdown: the summary of a run for a pull request or a note."""

from __future__ import annotations

import re
from typing import IO

from fairtrial.analyse import Run
from fairtrial.analyse.judge_words import judging_notes, label_lines
from fairtrial.analyse.summary import RunSummary
from fairtrial.analyse.words import (
    arm_cells,
    arm_columns,
    failure_line,
    headline,
    lift_lines,
    metric_lines,
    reporting_line,
    run_notes,
    tool_lines,
)

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#])")


def write(run: Run, file: IO[str]) -> None:
    """The summary of a run."""
    file.write(render(run.summary()))


def render(summary: RunSummary) -> str:
    """The Markdown text."""
    columns = arm_columns(summary)
    lines = [f"# {_plain(summary.suite)}", "", _plain(headline(summary)), ""]
    lines += ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(map(_plain, arm_cells(summary, arm))) + " |" for arm in summary.arms]
    lines.append("")
    for arm in summary.arms:
        lines.append(f"- {_plain(reporting_line(arm))}")
        lines += [
            f"  - {_plain(line)}"
            for line in (*metric_lines(arm), *lift_lines(summary, arm), *tool_lines(arm), *label_lines(arm))
        ]
    if notes := [*run_notes(summary), *judging_notes(summary.judging)]:
        lines += ["", *(f"> {_plain(note)}" for note in notes)]
    if summary.failures:
        lines += ["", "## Failures", "", *(f"- {_plain(failure_line(failure))}" for failure in summary.failures)]
    lines += ["", f"Dataset SHA-256: `{summary.dataset_sha256}`", ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Text that stays text: nothing in it is markup."""
    return _MARKUP.sub(r"\\\1", text)
