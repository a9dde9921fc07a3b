"""Sentences and table cells about cases, for the terminal, reports and web pages."""

from __future__ import annotations

from fairtrial.analyse.items import BetterMiss, CaseAnalysis, CaseItem, SameAnswer, analyse_cases
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.core.errors import FairtrialError
from fairtrial.core.formatting import number
from fairtrial.core.questions import repeated_words
from fairtrial.text.printable import counted

CASE_COLUMNS = ("case", "mean score", "discrimination", "")
_MOST = 8


def in_words(doubt: SameAnswer | BetterMiss) -> str:
    """Return why a case's expected answer may be wrong."""
    if isinstance(doubt, BetterMiss):
        return "better arms miss it, worse ones get it right"
    return f"{doubt.count} of {doubt.of} answers say `{doubt.answer}`"


def case_findings(run: Run) -> list[str]:
    """Return what a run's scores show about its cases; empty if its arms have no cases in common."""
    try:
        analysis = analyse_cases(read_scores(sources_of(run)))
    except FairtrialError:
        return []
    return [*case_lines(analysis), *subset_lines(analysis)]


def case_headline(analysis: CaseAnalysis) -> str:
    """Describe what was analysed: how many cases, arms and cases left out."""
    arms, cases = counted(len(analysis.arms), "arm"), counted(len(analysis.cases), "case")
    missing = counted(analysis.left_out, "case")
    left_out = f"; left out: {missing} without a score from every arm" if analysis.left_out else ""
    return f"{cases}, analysed by the scores of {arms}{left_out}"


def case_cells(case: CaseItem) -> list[str]:
    """Return one case as a table row, in the order of CASE_COLUMNS."""
    discrimination = "–" if case.discrimination is None else f"{case.discrimination:+.2f}"
    return [case.id, number(1 - case.difficulty), discrimination, case.suspicious or case.dead]


def case_lines(analysis: CaseAnalysis) -> list[str]:
    """List the suspicious cases to check and the dead ones that are not worth paying for."""
    lines = []
    for case in analysis.suspicious[:_MOST]:
        lines.append(f"look at {case.id}: {case.suspicious}; its expected answer may be wrong")
    if len(analysis.suspicious) > _MOST:
        lines.append(f"and at {len(analysis.suspicious) - _MOST} more suspicious cases (--json lists them)")
    right = [case for case in analysis.dead if case.dead == "always right"]
    wrong = [case for case in analysis.dead if case.dead == "always wrong"]
    if right:
        lines.append(f"{_on_cases(right)} every answer of every arm is right: they do not tell the arms apart")
    if wrong:
        lines.append(f"{_on_cases(wrong)} every answer of every arm is wrong: too hard, or broken")
    if not lines:
        lines.append("no case is dead or suspicious")
    return lines + [repeated_words(one.repeated, one.cases) for one in analysis.repeated]


def _on_cases(cases: list[CaseItem]) -> str:
    named = ", ".join(case.id for case in cases[:5]) + (", …" if len(cases) > 5 else "")
    return f"on {len(cases)} case{'s' if len(cases) != 1 else ''} ({named})"


def subset_lines(analysis: CaseAnalysis) -> list[str]:
    """Say how many cases would be enough to keep the order of the arms, and what precision that costs."""
    if not analysis.subsets:
        return []
    if analysis.cheapest is None:
        return ["no smaller set of cases keeps the order of the arms, or no arm is better than another yet"]
    subset = next(candidate for candidate in analysis.subsets if candidate.cases == analysis.cheapest)
    return [
        f"{subset.cases} of {len(analysis.cases)} cases keep the order of the arms in {100 * subset.kept:.0f} % of "
        f"draws; means are then off by about {number(subset.off)} points, and intervals {subset.wider:.1f} times as "
        f"wide (`fairtrial cases --subset {subset.cases} -o ids.txt` chooses them)"
    ]
