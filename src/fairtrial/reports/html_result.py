"""What a report and a page of a site show of a run: the figures of its web page, then answers, then details."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.analyse.causes import causes
from fairtrial.analyse.compare import compared
from fairtrial.analyse.overview import Overview
from fairtrial.analyse.run import Run
from fairtrial.analyse.run_numbers import MOST_PAIRS, ResultNumbers, result_numbers
from fairtrial.analyse.summary import RunSummary
from fairtrial.core.experiment import Arm
from fairtrial.present.figures import Links
from fairtrial.present.run_view import RunView, pairs_view
from fairtrial.present.words.cases import case_findings
from fairtrial.present.words.causes import causes_words
from fairtrial.present.words.leaderboards import headline
from fairtrial.present.words.runs import sent_text
from fairtrial.reports.html_figures import figures, ranking

_OPEN = ("running", "interrupted")


class ReportedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run, analysed, and what a template shows of it."""

    run: Run
    summary: RunSummary
    overview: Overview
    order: list[str]  # the arms, the best first, then those without a score
    headline: str
    view: RunView

    @property
    def values(self) -> dict[str, Any]:
        """The values of its template."""
        return {"result": self.view, "made": day(self.summary.created_at), **_conditions(self.run)}


def result_of(run: Run) -> ReportedRun:
    """Analyse a run."""
    numbers = result_numbers(run)
    leaderboard = numbers.overview.leaderboard
    order = [*(one.label for one in leaderboard.places), *leaderboard.unscored]
    return ReportedRun(
        run=run,
        summary=numbers.summary,
        overview=numbers.overview,
        order=order,
        headline=headline(leaderboard),
        view=_view(run, numbers, order),
    )


def _view(run: Run, numbers: ResultNumbers, order: list[str]) -> RunView:
    """Return what the page of a run shows, and what that page loads or links to."""
    view = RunView(run, numbers, _links(order))
    comparisons = compared(run, detailed=MOST_PAIRS)
    view.causes = causes_words(causes(run))
    view.status = _unfinished(numbers.summary)
    view.ranking = ranking(run)
    view.figures = figures(run, numbers.summary, order)
    view.pairs = pairs_view(comparisons, view.notes, case_findings(run) if comparisons else ())
    view.variables = [
        msgspec.structs.replace(item, value=_without_places(item.value, run.plan.folder)) for item in view.variables
    ]
    return view


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


def own_parts(pages: dict[str, Any] | None) -> dict[str, Any]:
    """Return what a report shows between figures and details: the pages that models wrote, and every answer."""
    return {"pages": pages, "parts": [*(["pages.html.j2"] if pages else []), "answers.html.j2"]}


def day(timestamp: float) -> str:
    """Format a date in words: `16 Nov 2026`."""
    made = datetime.fromtimestamp(timestamp, UTC)
    return f"{made.day} {made.strftime('%b %Y')}"
