"""The comment on a pull request: one per suite, short enough to read, in Markdown that GitHub and GitLab show alike.

Names, questions and answers are data. Names are in code spans, longer texts in escaped HTML on one line: there,
neither service looks for Markdown, links, images, mentions, references or commands.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from fairtrial.analyse.gate_changes import BaselineChanges, Worse
from fairtrial.analyse.gate_result import Gate, GateCheck
from fairtrial.core.formatting import number
from fairtrial.present.arms import ArmTable
from fairtrial.present.words.gates import reuse_words
from fairtrial.text.printable import clipped, counted, one_line, printable

_SIGNS = {"passed": "✅", "failed": "❌", "cannot tell": "❔"}
_COMPARED = ("regression", "category", "guard")  # checks against the baseline
_LONGEST, _LONGEST_TEXT = 60_000, 1_200  # characters: GitHub takes 65,536
_BAR = 33  # characters of a drawn interval
_MARK = re.compile(r"^<!-- fairtrial gate (\S+) run=([\w-]+) -->")


def marker(suite: str, run_id: str) -> str:
    """Return the invisible first line by which a comment is found again."""
    return f"<!-- fairtrial gate {_slug(suite)} run={run_id} -->"


def run_of(body: str, suite: str) -> str | None:
    """Return the run that a comment is about; None if it is not a comment about this suite."""
    match = _MARK.match(body)
    return match[2] if match and match[1] == _slug(suite) else None


def _slug(suite: str) -> str:
    return "".join(one if one.isascii() and one.isalnum() else f"_{ord(one):x}_" for one in suite)


def render(
    gate: Gate,
    changes: BaselineChanges,
    *,
    suite: str,
    run_id: str,
    report: str | None = None,
    arms: ArmTable | None = None,
) -> str:  # fmt: skip
    """Return the body of the comment."""
    lines = [marker(suite, run_id), f"### {_SIGNS[gate.result]} {code(suite)}: {_headline(gate)}", ""]
    lines += _forest(gate)
    lines += _table(gate.checks)
    lines += _settle(gate)
    lines += _arms(arms) if arms else []
    lines += _worse(changes.worse)
    lines += _flaky(gate)
    cost = f"{'' if changes.cost_known else '≥ '}${changes.cost_usd:.2f}"
    changed = ", ".join(code(part) for part in changes.changed) or "nothing that answers depend on"
    lines += ["", f"{reuse_words(changes)} Cost: {cost}. Changed: {changed}."]
    lines += [f"- {code(note)}" for note in (gate.compared_with, *gate.notes) if note]
    lines += [f"- {gate.method}."] if gate.method else []
    link = f" · [report]({report})" if report and _is_link(report) else ""
    against = f" against {code(', '.join(gate.against))}" if gate.against else ""
    lines += ["", f"<sub>run {code(', '.join(gate.run_ids))}{against}{link}</sub>", ""]
    return _shortened("\n".join(lines))


def _headline(gate: Gate) -> str:
    compared = [check.result for check in gate.checks if check.name.startswith(_COMPARED)]
    if gate.result == "failed":
        return "blocked: something got worse" if "failed" in compared else "blocked: a rule is not met"
    if gate.result == "passed":
        return "passed: nothing got worse by more than it may" if compared else "passed; compared with nothing"
    return "cannot tell: there is no baseline" if gate.lacks_baseline else "cannot tell yet"


def _forest(gate: Gate) -> list[str]:
    """Draw the difference of every arm's score to the baseline, with 0 and the margin."""
    drawn = [
        check
        for check in gate.checks
        if check.name == "regression" and check.interval and check.limit is not None and not check.metric
    ]
    if not drawn:
        return []
    ends = [abs(end) for check in drawn for end in (*(check.interval or ()), check.limit or 0.0)]
    reach = max([*ends, 0.01])
    width = max(len(_name(check.arm)) for check in drawn)
    rows = [f"{_bar(check, reach)}  {_name(check.arm):{width}}  {_numbers(check)}" for check in drawn]
    head = f"{'loss':<{_BAR // 2}}0{'gain':>{_BAR // 2}}"
    return ["```text", head.rstrip(), *rows, "```", ""]


def _name(text: str) -> str:
    return clipped(one_line(text).replace("`", "'"), 30)


def _bar(check: GateCheck, reach: float) -> str:
    def place(value: float) -> int:
        return min(_BAR - 1, max(0, round((value / reach + 1) / 2 * (_BAR - 1))))

    assert check.interval and check.limit is not None
    line = ["·"] * _BAR
    line[place(0.0)], line[place(check.limit)] = "│", "┊"
    for at in range(place(check.interval[0]), place(check.interval[1]) + 1):
        line[at] = "━"
    line[place(check.value or 0.0)] = "●"
    return "".join(line)


def _numbers(check: GateCheck) -> str:
    assert check.interval
    low, high = (f"{100 * end:+.1f}".replace("-", "−") for end in check.interval)
    return f"{100 * (check.value or 0.0):+.1f} ({low} to {high})".replace("-", "−")


def _table(checks: Sequence[GateCheck]) -> list[str]:
    """Return the checks as a table in HTML: a cell of a Markdown table cannot hold any text."""
    rows = "".join(
        f"<tr><td>{_SIGNS[check.result]}</td>"
        + "".join(f"<td><code>{_escaped(text)}</code></td>" for text in (check.name, check.arm, check.message))
        + "</tr>"
        for check in checks
    )
    return [f"<table><tr><th></th><th>check</th><th>arm</th><th></th></tr>{rows}</table>"]


def _arms(arms: ArmTable) -> list[str]:
    """Return the table of arms, folded."""
    head = "".join(f"<th>{_escaped(column.long_name)}</th>" for column in arms.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td><code>{_escaped(cell)}</code></td>" for cell in row) + "</tr>" for row in arms.cells
    )
    table = f"<table><tr>{head}</tr>{rows}</table>"
    return [
        "",
        f"<details><summary>All numbers of {counted(len(arms.rows), 'arm')}</summary>",
        "",
        table,
        "",
        "</details>",
    ]


def _settle(gate: Gate) -> list[str]:
    if gate.result != "cannot tell" or not gate.settle:
        return []
    return ["", "`--until-sure --budget-usd X` asks more until it is decided, and stops there."]


def _worse(worse: Sequence[Worse]) -> list[str]:
    """Return the cases that got worse, each answer next to the one before."""
    if not worse:
        return []
    lines = ["", f"<details><summary>{counted(len(worse), 'case')} with a lower score than before</summary>", ""]
    for one in worse:
        scores = f"{number(one.score_before)} → {number(one.score_after)}"
        expected = f"<br>expected: {_text(one.expected)}" if one.expected else ""
        cells = f"<td>{_text(one.before)}</td><td>{_text(one.after)}</td>"
        lines += [
            f"{code(one.case)} · {code(one.arm)} · {scores}",
            "",
            f"<table><tr><td colspan=2>{_text(one.question)}{expected}</td></tr>"
            f"<tr><th>before</th><th>now</th></tr><tr>{cells}</tr></table>",
            "",
        ]
    return [*lines, "</details>"]


def _flaky(gate: Gate) -> list[str]:
    lines = []
    if gate.flaky:
        listed = ", ".join(code(f"{one.case} ({one.passed} of {one.answers})") for one in gate.flaky[:20])
        more = f" and {gate.flaky_count - 20} more" if gate.flaky_count > 20 else ""
        lines += ["", f"Flaky without any change: {listed}{more}"]
    if gate.quarantined:
        lines += ["", f"In quarantine, not counted: {', '.join(map(code, gate.quarantined[:20]))}"]
    return lines


def code(text: str) -> str:
    """Return a text as a code span on one line, in which nothing is markup."""
    plain = printable(one_line(text)) or " "
    ticks = "`" * (max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    room = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{ticks}{room}{plain}{room}{ticks}"


def _text(text: str) -> str:
    """Return a longer text as escaped HTML on one line: no line of it is read as Markdown or as a command."""
    return f"<pre>{_escaped(clipped(text.strip(), _LONGEST_TEXT))}</pre>"


def _escaped(text: str) -> str:
    return html.escape(printable(text)).replace("\t", "    ").replace("\n", "&#10;")


def _is_link(url: str) -> bool:
    return re.fullmatch(r"https?://[^\s<>()\[\]]+", url) is not None


def _shortened(body: str) -> str:
    """Leave out answers if the comment is longer than the services take."""
    if len(body) <= _LONGEST:
        return body
    start, end = body.rfind("<details>"), body.rfind("</details>")
    if 0 <= start < end:
        body = f"{body[:start]}The answers are in the report.{body[end + len('</details>') :]}"
    return body if len(body) <= _LONGEST else f"{body[: _LONGEST - 2]}…\n"
