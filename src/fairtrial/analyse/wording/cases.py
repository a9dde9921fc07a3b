"""Cases in words and cells, for the terminal, the report and the page."""

from __future__ import annotations

from fairtrial.analyse.items import CaseAnalysis, CaseItem, analyse_cases
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.analyse.wording.runs import number
from fairtrial.core.errors import FairtrialError

CASE_COLUMNS = ("case", "mean score", "discrimination", "")
_MOST = 8


def worth_of_cases(run: Run) -> list[str]:
    """What a run's arms tell of its cases; nothing where they have no case in common."""
    try:
        found = analyse_cases(read_scores(sources_of(run)))
    except FairtrialError:
        return []
    return [*case_lines(found), *subset_lines(found)]


def case_headline(found: CaseAnalysis) -> str:
    """What was looked at."""
    arms = f"{len(found.arms)} arm{'s' if len(found.arms) != 1 else ''}"
    left = f"; {found.left_out} without a score of every arm are left out" if found.left_out else ""
    return f"{len(found.cases)} cases, by the scores of {arms}{left}"


def case_cells(case: CaseItem) -> list[str]:
    """One case as a row."""
    told = "–" if case.discrimination is None else f"{case.discrimination:+.2f}"
    return [case.id, number(1 - case.difficulty), told, case.suspicious or case.dead]


def case_lines(found: CaseAnalysis) -> list[str]:
    """What to do about cases: look at the suspicious ones, and do not pay for the dead ones."""
    lines = []
    for case in found.suspicious[:_MOST]:
        lines.append(f"look at {case.id}: {case.suspicious}; perhaps its expected answer is wrong")
    if len(found.suspicious) > _MOST:
        lines.append(f"and at {len(found.suspicious) - _MOST} more (--json lists them)")
    right = [case for case in found.dead if case.dead == "always right"]
    wrong = [case for case in found.dead if case.dead == "always wrong"]
    if right:
        lines.append(f"{_some(right)} every answer of every arm is right: they tell nobody apart")
    if wrong:
        lines.append(f"{_some(wrong)} every answer of every arm is wrong: too hard, or broken")
    if not lines:
        lines.append("no case is dead or suspicious")
    return lines


def _some(cases: list[CaseItem]) -> str:
    named = ", ".join(case.id for case in cases[:5]) + (", …" if len(cases) > 5 else "")
    return f"on {len(cases)} case{'s' if len(cases) != 1 else ''} ({named})"


def subset_lines(found: CaseAnalysis) -> list[str]:
    """How many cases would do, and what fewer of them cost."""
    if not found.subsets:
        return []
    if found.cheapest is None:
        return ["no smaller set of cases keeps the order of the arms, or no arm is better than another yet"]
    subset = next(one for one in found.subsets if one.cases == found.cheapest)
    return [
        f"{subset.cases} of {len(found.cases)} cases keep the order of the arms in {100 * subset.kept:.0f} % of draws; "
        f"means are then off by about {number(subset.off)} points, and intervals {subset.wider:.1f} times as wide "
        f"(`fairtrial cases --subset {subset.cases} -o ids.txt` chooses them)"
    ]
