"""JUnit XML for CI servers: a score below 50 is a failure, a missing score an error."""

from __future__ import annotations

import re
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from fairtrial.analyse.gate import Gate
from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.core.expected import show_expected
from fairtrial.present.words.limits import trial_limit
from fairtrial.text.printable import printable, without_commands

_FORBIDDEN = re.compile("[\ud800-\udfff\ufffe\uffff]")  # not allowed in XML, besides control characters
PASS_MARK = 0.5


def write(run: Run, file: IO[str]) -> None:
    """Write every trial as a test case; a score of at least 50 passes."""
    summary = run.summary()
    total = sum(arm.scored + arm.failed + arm.unscored for arm in summary.arms)
    failures = sum(1 for trial in run.trials() if trial.score is not None and trial.score < PASS_MARK)
    errors = sum(arm.failed + arm.unscored for arm in summary.arms)
    file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    file.write(
        f"<testsuite name={_attribute(summary.suite)} id={_attribute(summary.run_id)} "
        f'tests="{total}" failures="{failures}" errors="{errors}">\n'
    )
    for trial in run.trials():
        file.write(_case(trial))
    file.write("</testsuite>\n")


def render_gate(gate: Gate) -> str:
    """Return every check of a gate as a test case; "cannot tell" is an error."""
    failed = sum(check.result == "failed" for check in gate.checks)
    unsure = sum(check.result == "cannot tell" for check in gate.checks)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="fairtrial gate" id={_attribute(", ".join(gate.run_ids))} '
        f'tests="{len(gate.checks)}" failures="{failed}" errors="{unsure}">',
    ]
    tags = {"failed": "failure", "cannot tell": "error"}
    for check in gate.checks:
        tag = tags.get(check.result)
        message = _attribute(f"{check.result}: {check.message}")
        cases = escape(_clean("\n".join(check.cases)))
        finding = (
            "" if not tag else f"<{tag} message={message}>{cases}</{tag}>" if cases else f"<{tag} message={message}/>"
        )
        lines.append(
            f"  <testcase classname={_attribute(check.arm)} name={_attribute(check.name)}>{finding}</testcase>"
        )
    return "\n".join([*lines, "</testsuite>", ""])


def _case(trial: TrialRecord) -> str:
    name = trial.case_id if trial.repeat == 1 else f"{trial.case_id} #{trial.repeat}"
    seconds = (trial.latency_ms or 0.0) / 1000
    head = f'  <testcase classname={_attribute(trial.arm)} name={_attribute(name)} time="{seconds:.3f}">'
    return f"{head}{_finding(trial)}</testcase>\n"


def _finding(trial: TrialRecord) -> str:
    if trial.status == "failed":
        return f"<error type={_attribute(trial.failure_kind)} message={_attribute(trial.failure_message)}/>"
    if trial.status == "unscored":
        return f"<error type={_attribute(trial.unscored_kind)} message={_attribute(trial.unscored_message)}/>"
    if trial.score is None:
        return "<skipped/>"
    if trial.score >= PASS_MARK:
        return ""
    message = f"score {100 * trial.score:.1f}: {'; '.join(filter(None, [trial_limit(trial), trial.notes]))}"
    body = f"expected: {show_expected(trial.expected)}\nanswer: {trial.answer}"
    return f"<failure message={_attribute(message)}>{escape(_clean(body))}</failure>"


def _attribute(text: str | None) -> str:
    return quoteattr(_clean(text or ""))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", without_commands(printable(text)))
