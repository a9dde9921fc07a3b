"""What an audit found, in words: the same on the terminal, in the report, in JSON and in notebooks."""

from __future__ import annotations

from collections.abc import Iterable

from fairtrial.text.printable import clipped, counted, one_line
from fairtrial.tracks.audit.result import Audit, AuditRow, Status

STATUSES: tuple[Status, ...] = ("finding", "missing", "unchecked")  # of which something is said
_LONGEST = 160  # characters of what a check said
TITLES = {
    "solution": "the reference solution passes, every time",
    "nothing": "doing nothing fails",
    "answers": "empty, constant, refusing and all-embracing answers fail",
    "offline": "the solution passes without a network",
    "date": "the solution passes at another date",
    "stub": "a stub that returns nothing fails",
    "tests": "deleted, emptied, skipped and replaced tests fail",
    "hooks": "conftest.py, settings of pytest, sitecustomize.py and .pth files do not help",
    "shadows": "modules named like the check's do not help",
    "programs": "programs named like the check's do not help",
    "endings": "ending early, a printed score and a written result do not help",
    "secrets": "what the check expects cannot be read",
    "links": "links to the check's files do not help",
    "order": "what was tried before makes no difference",
}
_ADVICE = {
    "solution": "correct the check, the task or the solution",
    "nothing": "let the check require what the task asks for",
    "answers": "let the scorer require the answer itself (`match`, `exact`, `choice`; `extract` for a part of it)",
    "offline": "give the check what it needs in `files`, or install it in `setup`",
    "date": "write dates into the task, instead of asking for today's",
    "stub": "let the check call what the task asks for, and compare what it returns",
    "tests": "keep what decides outside of the workspace: `check: {files: …}`",
    "hooks": "bring the tests with `check: {files: …}`, and start them as `pytest …` or `python -m …`, without a shell",
    "shadows": "start the check as `python check.py` from its `files`, without a shell, or with `python -I`",
    "programs": "name programs of this machine by what they are called, not by a path in the workspace",
    "endings": "start the agent's program from the check, take its output, and compare what it computes",
    "secrets": "set `sandbox: bubblewrap` without `read`, and leave out of the workspace what the check knows",
    "links": "compare contents only after refusing links, or compute what is expected instead of bringing it",
    "order": "let the check keep nothing outside of its workspace, or set `sandbox: bubblewrap`",
}
_SOLUTION_FAILS = {
    "offline": "its solution fails without a network",
    "date": "its solution fails at another date",
}
_IN_FULL = {"fails": "its solution fails after other attempts", "no score": "doing nothing is not scored"}
_MISSING = (
    "no reference solution: add `solution:` to the case, files, a patch or a command that solve it "
    "(of a question: a right answer)"
)

MARKS = "· as it should be   x finding   ? no solution to try   – not checked"
_MARK = {"sound": "·", "finding": "x", "missing": "?", "unchecked": "–"}


def sentence(row: AuditRow) -> str:
    """Say what is wrong and what to do, or why it is not known."""
    if row.status == "missing":
        return f"{_MISSING}{f' ({row.what})' if row.what else ''}"
    if row.status == "unchecked":
        return f"not checked: {row.what}"
    if row.status == "sound":
        return row.what or "sound"
    return f"{_wrong(row)}: {_ADVICE[row.probe]}"


def _wrong(row: AuditRow) -> str:
    said = f" ({clipped(one_line(row.notes), _LONGEST)})" if row.notes else ""
    if row.probe == "secrets":
        return f"its agent can see what it must not: {row.what}"
    if row.probe in _SOLUTION_FAILS:
        return f"{_SOLUTION_FAILS[row.probe]}{said}"
    if row.probe == "solution":
        often = "never passes" if not row.passed else f"passes only {row.passed} of {row.tried} times"
        return f"its solution {row.what}" if row.what else f"its solution {often}{said}"
    if row.what in _IN_FULL:
        return f"{_IN_FULL[row.what]}{said}"
    return row.what if row.what.startswith("cannot be tried") else f"passes with {row.what}"


def headline(audit: Audit) -> str:
    """Say what came of it in one line."""
    found, missing = audit.findings, {row.case for row in audit.of("missing")}
    cases = counted(len(audit.cases), "case")
    wrong = len({row.case for row in found})
    head = f"{counted(len(found), 'finding')} in {wrong} of {cases}" if found else f"nothing found in {cases}"
    return f"{head}; {counted(len(missing), 'case')} without a reference solution" if missing else head


def name_of(row: AuditRow) -> str:
    """Return the case of a row, with the arm where that matters."""
    return f"{row.case} ({row.arm})" if row.arm else row.case


def grouped(rows: Iterable[AuditRow]) -> list[str]:
    """Return what rows say, one line for all cases that share it."""
    cases: dict[str, list[str]] = {}
    for row in rows:
        cases.setdefault(sentence(row), []).append(name_of(row))
    return [f"{_cases(names)}: {said}" for said, names in cases.items()]


def _cases(names: list[str]) -> str:
    names = list(dict.fromkeys(names))
    shown = ", ".join(f"`{name}`" for name in names[:3])
    return (
        f"case {shown}"
        if len(names) == 1
        else f"cases {shown}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    )


def marks(audit: Audit) -> list[tuple[str, list[str]]]:
    """Return a mark for every case and probe; blank where a probe does not concern a case."""
    by_case: dict[str, dict[str, str]] = {}
    for row in audit.rows:
        by_case.setdefault(name_of(row), {})[row.probe] = _MARK[row.status]
    return [(name, [found.get(probe, "") for probe in audit.probes]) for name, found in by_case.items()]


def advised(audit: Audit) -> list[str]:
    """Return what is wrong, then what is not known."""
    return [line for status in STATUSES for line in grouped(audit.of(status))]
