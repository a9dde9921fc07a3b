"""The result of a run as pages and reports show it: who leads, every pair, cost, kinds of cases, all numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.run import Run
from fairtrial.analyse.run_numbers import MOST_PAIRS, ResultNumbers
from fairtrial.analyse.summary import ArmSummary, RunSummary
from fairtrial.present.arms import arm_table
from fairtrial.present.facts import run_facts
from fairtrial.present.figures import (
    Links,
    case_strips,
    cost_figures,
    kind_figures,
    leaders,
    metric_figures,
    pair_matrix,
    spread_figures,
    tools_section,
)
from fairtrial.present.figures.arms import drawn_metrics
from fairtrial.present.figures.leaders import Figure
from fairtrial.present.words.arm_notes import arm_lines, notes
from fairtrial.present.words.causes import CausesWords
from fairtrial.present.words.comparisons import brief_lines, detail_lines, p_words, sentence, subject_line
from fairtrial.present.words.kinds import NOTE, kind_tables, more_text, report_text
from fairtrial.present.words.leaderboards import decided_words, headline_parts, settle_words
from fairtrial.present.words.prices import price_words
from fairtrial.present.words.runs import failure_line, noise_words
from fairtrial.present.words.variables import variables
from fairtrial.text.printable import counted

_MOST_FAILURES = 20


class PairsView(msgspec.Struct, frozen=True, kw_only=True):
    """Every pair in words, and what else is to be known about the comparison."""

    subject: str = ""
    pairs: list[dict[str, Any]] = []
    more: int = 0
    notes: list[str] = []


class RunView:
    """What sections show of a run: its numbers, drawn and worded; `links` say where its arms and parts lead."""

    def __init__(self, run: Run, numbers: ResultNumbers, links: Links) -> None:
        summary, leaderboard = numbers.summary, numbers.overview.leaderboard
        arms = {arm.arm: arm for arm in summary.arms}
        order = [one.label for one in leaderboard.places]
        self.run_id, self.summary, self.leaderboard, self.links = run.id, summary, leaderboard, links
        self.headline = headline_parts(leaderboard)
        self.facts = run_facts(run, summary)
        self.leaders = leaders(leaderboard, arms, links) if arms else ""
        self.settle, self.price = settle_words(leaderboard), price_words(leaderboard)
        self.matrix = pair_matrix(leaderboard, links) if len(order) > 2 else ""
        self.decided = decided_words(leaderboard)
        self.costs = cost_figures(leaderboard, arms, links)
        self.kinds = kind_figures(numbers.kinds, order, {arm.arm: arm.aggregate.mean for arm in summary.arms}, links)
        self.kind_tables = kind_tables(numbers.kinds, [*order, *leaderboard.unscored], cell=report_text)
        self.kinds_note, self.more_kinds = NOTE, more_text
        self.strips = case_strips(numbers.overview) if numbers.overview.cases > 1 else ""
        self.case_count = numbers.overview.cases
        self.tools = tools_section(summary, numbers.tools, links)
        self.metrics = metric_figures(summary, order, links)
        self.spreads = spread_figures(numbers.spreads, order, links)
        self.arms = arm_table(summary.arms, leaderboard)
        self.arm_lines = _arm_lines(summary, equipped=numbers.tools is not None)
        self.notes = notes(summary)
        self.failures = [failure_line(failure) for failure in summary.failures[:_MOST_FAILURES]]
        self.fails = any(arm.failed or arm.unscored or (arm.aggregate.mean or 0.0) < 1 for arm in summary.arms)
        self.more_failures = max(0, len(summary.failures) - _MOST_FAILURES)
        self.noise = noise_words(summary.arms) if _noise_is_known(summary) else ""
        self.variables = variables(run)
        # What a report has at once, and a page when it is asked for.
        self.status, self.pairs = "", PairsView()
        self.ranking: Figure | None = None
        self.causes: CausesWords | None = None
        self.figures: list[Figure] = []


def pairs_view(comparisons: Comparisons | None, said: Sequence[str] = (), cases: Sequence[str] = ()) -> PairsView:
    """Word every pair, with what the `cases` tell; notes that were `said` already are left out."""
    if comparisons is None:
        return PairsView()
    pairs = [
        {
            "sentence": sentence(pair, comparisons.margin),
            "test": f"p {p_words(pair.p_adjusted)}, {counted(pair.count, 'case')}",
            "brief": brief_lines(pair),
            "lines": detail_lines(pair),
            "verdict": pair.verdict.replace(" ", "-"),
        }
        for pair in comparisons.pairs[:MOST_PAIRS]
    ]
    return PairsView(
        subject=subject_line(comparisons),
        pairs=pairs,
        more=max(0, len(comparisons.pairs) - MOST_PAIRS),
        notes=[*(note for note in comparisons.notes if note not in said), *cases],
    )


def _noise_is_known(summary: RunSummary) -> bool:
    """Return whether cases were answered, or answers judged, more than once."""
    judging = summary.judging
    return any(arm.repeat_sd is not None for arm in summary.arms) or bool(judging and judging.judge_sd is not None)


def _arm_lines(summary: RunSummary, *, equipped: bool) -> dict[str, list[str]]:
    """Return what is known about each arm and not drawn; `equipped` says whether there is a section about tools."""
    drawn = drawn_metrics(summary)
    known = msgspec.structs.replace(summary, lifts=[]) if equipped else summary
    return {
        arm.arm: lines for arm in summary.arms if (lines := arm_lines(known, _undrawn(arm, drawn, equipped=equipped)))
    }


def _undrawn(arm: ArmSummary, drawn: Sequence[str], *, equipped: bool) -> ArmSummary:
    metrics = {name: own for name, own in arm.metrics.items() if name not in drawn}
    return msgspec.structs.replace(arm, metrics=metrics, tools=None if equipped else arm.tools)
