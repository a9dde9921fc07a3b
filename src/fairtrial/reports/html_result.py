"""What a report and a page of a site show of a run: the figures of its web page, then answers, then details."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.analyse.compare import compared
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.kind_means import by_kind
from fairtrial.analyse.overview import Overview, run_overview
from fairtrial.analyse.run import Run
from fairtrial.analyse.sent import sent_text
from fairtrial.analyse.summary import RunSummary, ranked
from fairtrial.analyse.tool_report import has_offers, tool_report
from fairtrial.analyse.variables import variables
from fairtrial.core.experiment import Arm
from fairtrial.core.formatting import money
from fairtrial.present.facts import run_facts
from fairtrial.present.figures import (
    Links,
    case_strips,
    cost_figures,
    kind_figures,
    leaders,
    pair_matrix,
    tools_section,
)
from fairtrial.present.words.arm_notes import arm_lines, notes
from fairtrial.present.words.cases import case_findings
from fairtrial.present.words.comparisons import brief_lines, detail_lines, p_words, sentence
from fairtrial.present.words.comparisons import subject_line as comparison_headline
from fairtrial.present.words.kinds import NOTE, kind_tables, more_text, report_text
from fairtrial.present.words.leaderboards import decided_words, headline, headline_parts, settle_words
from fairtrial.present.words.runs import failure_line
from fairtrial.reports.html_figures import figures, ranking
from fairtrial.text.printable import counted

_OPEN = ("running", "interrupted")
_MOST_FAILURES = 20
_MOST_PAIRS = 60  # in words; the matrix has every one


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run, analysed, and what a template shows of it."""

    run: Run
    summary: RunSummary
    overview: Overview
    order: list[str]  # the arms, the best first, then those without a score
    headline: str
    shown: dict[str, Any]


def result_of(run: Run) -> Result:
    """Analyse a run."""
    overview, summary = run_overview(run), run.summary()
    order = [*(one.label for one in overview.leaderboard.places), *overview.leaderboard.unscored]
    return Result(
        run=run,
        summary=summary,
        overview=overview,
        order=order,
        headline=headline(overview.leaderboard),
        shown=_shown(run, summary, overview, order),
    )


def _shown(run: Run, summary: RunSummary, overview: Overview, order: list[str]) -> dict[str, Any]:
    leaderboard = overview.leaderboard
    arms = {arm.arm: arm for arm in summary.arms}
    links = _links(order)
    comparisons = compared(run, detailed=_MOST_PAIRS)
    placed = [one.label for one in leaderboard.places]
    kinds = by_kind(run)
    return {
        "suite": summary.suite,
        "run_id": run.id,
        "status": _unfinished(summary),
        "made": day(summary.created_at),
        "metric": leaderboard.metric,
        "headline": headline_parts(leaderboard),
        "arm_href": links.arm,
        "facts": facts(run, summary),
        "arm_count": len(summary.arms),
        "leaders": leaders(leaderboard, arms, links) if order else "",
        "brackets": bool(leaderboard.shown_brackets),
        "settle": settle_words(leaderboard),
        "matrix": pair_matrix(leaderboard, links) if len(placed) > 2 else "",
        "decided": decided_words(leaderboard),
        "costs": cost_figures(leaderboard, arms, links),
        "kinds": kind_figures(kinds, placed, {arm.arm: arm.aggregate.mean for arm in summary.arms}),
        "kind_tables": kind_tables(kinds, order, cell=report_text),
        "kinds_note": NOTE,
        "more_kinds": more_text,
        "strips": case_strips(overview) if overview.cases > 1 else "",
        "case_count": overview.cases,
        "tools": tools_section(summary, tool_report(run) if has_offers(run) else None, links),
        "ranking": ranking(run),
        "figures": figures(run, summary, order),
        "ranked": ranked(summary.arms),
        "arm_lines": {arm.arm: lines for arm in summary.arms if (lines := arm_lines(summary, arm))},
        "notes": notes(summary),
        "failures": [failure_line(failure) for failure in summary.failures[:_MOST_FAILURES]],
        "more_failures": max(0, len(summary.failures) - _MOST_FAILURES),
        "pairs": _pairs(comparisons),
        "more_pairs": max(0, len(comparisons.pairs) - _MOST_PAIRS) if comparisons else 0,
        "pair_headline": comparison_headline(comparisons) if comparisons else "",
        "pair_notes": [note for note in comparisons.notes if note not in notes(summary)] if comparisons else [],
        "case_worth": case_findings(run) if comparisons else [],
        **_conditions(run),
    }


def _unfinished(summary: RunSummary) -> str:
    """Say why a run has not all its answers; empty if it has ended by itself."""
    if summary.reason and summary.reason != summary.status:
        return summary.reason
    return f"This run is {summary.status}: its numbers may still change." if summary.status in _OPEN else ""


def _conditions(run: Run) -> dict[str, Any]:
    """Return what was asked, how, and with which versions."""

    def shown(text: str) -> str:
        return _without_places(text, run.plan.folder)

    return {
        "variables": [msgspec.structs.replace(item, value=shown(item.value)) for item in variables(run)],
        "arms": [_arm(run, arm, shown) for arm in run.plan_arms],
        "suite_text": shown(run.plan.suite_text),
        "suite_sha256": run.plan.suite_sha256,
        "dataset_sha256": run.plan.dataset_sha256,
        "settings": shown(_json(run.settings)),
        "context": shown(_json(run.context)),
    }


def _arm(run: Run, arm: Arm, shown: Callable[[str], str]) -> dict[str, Any]:
    servers = [f"{server.name}: {server.shown()}" for server in arm.condition.mcp]
    skills = [skill.name + (" (as text)" if skill.as_text else "") for skill in arm.condition.skills]
    facts = {
        "target": arm.target.id,
        "parameters": sent_text(run.sent(arm), arm),
        "repeats": str(arm.repeats),
        "MCP servers": "; ".join(servers),
        "skills": "; ".join(skills),
    }
    return {
        "name": arm.name,
        "facts": {name: shown(value) for name, value in facts.items() if value},
        "system": arm.condition.system,
    }


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _without_places(text: str, folder: str) -> str:
    """Leave out where the suite and the user's files are on this machine: readers elsewhere need not know."""
    for place, name in ((Path(folder), "."), (Path.home(), "~")):
        if len(place.parts) > 2:
            text = text.replace(str(place), name)
    return text


def _links(order: list[str]) -> Links:
    """Return addresses inside the page: an arm's worst answers, and the answers in which two arms differ most."""
    places = {label: place for place, label in enumerate(order)}
    return Links(
        arm=lambda arm: f"#arm-{places[arm]}" if arm in places else "",
        pair=lambda a, b: f"#pair-{places[a]}-{places[b]}" if a in places and b in places else "",
    )


def facts(run: Run, summary: RunSummary) -> list[str]:
    """Return the line below the headline: how many cases, answers and failures, which judge, when, what it cost."""
    found = run_facts(run, summary)
    missing = [
        f"{count:,} {words}"
        for count, words in (
            (found.failed, "failed"),
            (found.unscored, "without a score"),
            (found.waiting, "not run"),
        )
        if count
    ]
    return [
        f"{counted(found.cases, 'case')} × {counted(found.arms, 'arm')}",
        ", ".join([f"{found.scored:,} of {found.trials:,} trials scored", *missing]),
        *([f"judge {', '.join(found.judges[:3])}"] if found.judges else []),
        *([money(found.cost)] if found.cost else []),
    ]


def day(timestamp: float) -> str:
    """Format a date in words: `16 Nov 2026`."""
    made = datetime.fromtimestamp(timestamp, UTC)
    return f"{made.day} {made.strftime('%b %Y')}"


def _pairs(comparisons: Comparisons | None) -> list[dict[str, Any]]:
    if comparisons is None:
        return []
    return [
        {
            "sentence": sentence(pair, comparisons.margin),
            "test": f"p {p_words(pair.p_adjusted)}, {counted(pair.count, 'case')}",
            "brief": brief_lines(pair),
            "lines": detail_lines(pair),
            "verdict": pair.verdict.replace(" ", "-"),
        }
        for pair in comparisons.pairs[:_MOST_PAIRS]
    ]
