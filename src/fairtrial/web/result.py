"""The result of a run as its page shows it: the headline, who leads, every pair, cost, kinds of cases, all cases."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.analyse.summary import ArmSummary, RunSummary, ranked
from fairtrial.analyse.variables import variables
from fairtrial.core.errors import FairtrialError
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
    variance_figure,
)
from fairtrial.present.figures.arms import drawn_metrics
from fairtrial.present.words.arm_notes import arm_lines, notes
from fairtrial.present.words.comparisons import brief_lines, sentence
from fairtrial.present.words.leaderboards import decided_words, headline_parts, settle_words
from fairtrial.present.words.planning import VARIANCE_COLUMNS, variance_cells
from fairtrial.present.words.runs import failure_line, noise_words
from fairtrial.web import numbers
from fairtrial.web.cache import NumberCache
from fairtrial.web.numbers import RunDetails, RunNumbers, RunVariance
from fairtrial.web.site import url

_MAX_LIVE_TRIALS = 20_000  # a larger run in progress shows means only; its analysis waits for its end
_MOST_FAILURES = 20
_MOST_VARIANCES = 20


def numbers_of(cache: NumberCache, run: Run, *, wait: float) -> RunNumbers | None:
    """Return the numbers of a run; None until they are computed."""
    if run.status == "running" and run.plan.case_count * len(run.plan_arms) > _MAX_LIVE_TRIALS:
        return None
    return cache.get(f"run/{run.id}", [run], RunNumbers, numbers.run_numbers, wait=wait)


def result_of(cache: NumberCache, run: Run, known: RunNumbers) -> dict[str, Any]:
    """Return the values of the result."""
    return cache.drawn(f"result/{run.id}", known, lambda: _drawn(run, known))


def _drawn(run: Run, known: RunNumbers) -> dict[str, Any]:
    leaderboard, summary = known.overview.leaderboard, known.summary
    arms = {arm.arm: arm for arm in summary.arms}
    links = run_links(run)
    order = [one.label for one in leaderboard.places]
    equipped = known.tools is not None
    return {
        "summary": summary,
        "leaderboard": leaderboard,
        "headline": headline_parts(leaderboard),
        "arm_href": links.arm,
        "leaders": leaders(leaderboard, arms, links),
        "settle": settle_words(leaderboard),
        "matrix": pair_matrix(leaderboard, links) if len(order) > 2 else "",
        "decided": decided_words(leaderboard),
        "costs": cost_figures(leaderboard, arms, links),
        "kinds": kind_figures(known.kinds, order, {arm.arm: arm.aggregate.mean for arm in summary.arms}, links),
        "strips": case_strips(known.overview) if known.overview.cases > 1 else "",
        "case_count": known.overview.cases,
        "facts": run_facts(run, summary),
        "ranked": ranked(summary.arms),
        "tools": tools_section(summary, known.tools, links),
        "metrics": metric_figures(summary, order, links),
        "spreads": spread_figures(known.spreads, order, links),
        "noise": noise_words(summary.arms) if _noise_is_known(summary) else "",
        "arm_lines": {arm.arm: lines for arm in summary.arms if (lines := _more_lines(summary, arm, section=equipped))},
        "notes": notes(summary),
        "failures": [failure_line(failure) for failure in summary.failures[:_MOST_FAILURES]],
        "variables": variables(run),
    }


def details_of(cache: NumberCache, run: Run, *, wait: float) -> dict[str, Any] | None:
    """Return every pair in words, and notes about them; None until they are computed."""
    if len(run.plan_arms) < 2:
        return {"verdicts": [], "more": 0, "notes": [], "cases": []}
    try:
        found = cache.get(f"details/{run.id}", [run], RunDetails, numbers.run_details, wait=wait)
    except FairtrialError as error:
        return {"verdicts": [], "more": 0, "notes": [str(error)], "cases": []}
    if found is None:
        return None
    comparisons = found.comparisons
    pairs = comparisons.pairs if comparisons else []
    margin = comparisons.margin if comparisons else None
    return {
        "verdicts": [(pair, sentence(pair, margin), brief_lines(pair)) for pair in pairs[: numbers.MOST_PAIRS]],
        "more": max(0, len(pairs) - numbers.MOST_PAIRS),
        "notes": comparisons.notes if comparisons else [],
        "cases": found.cases,
    }


def variance_of(cache: NumberCache, run: Run, *, wait: float) -> dict[str, Any] | None:
    """Return where the uncertainty of each arm comes from; None until it is computed."""
    try:
        found = cache.get(f"variance/{run.id}", [run], RunVariance, numbers.run_variance, wait=wait)
    except FairtrialError as error:
        return {"error": str(error)}
    if found is None:
        return None
    return {
        "error": "",
        "figure": variance_figure(found.arms[:_MOST_VARIANCES]),
        "columns": VARIANCE_COLUMNS,
        "rows": [variance_cells(arm) for arm in found.arms],
        "advice": {arm.label: arm.advice for arm in found.arms},
    }


def _noise_is_known(summary: RunSummary) -> bool:
    """Return whether cases were answered, or answers judged, more than once."""
    judging = summary.judging
    return any(arm.repeat_sd is not None for arm in summary.arms) or bool(judging and judging.judge_sd is not None)


def _more_lines(summary: RunSummary, arm: ArmSummary, *, section: bool) -> list[str]:
    """Return what is known about an arm and not drawn; `section` says whether there is one about tools."""
    drawn = drawn_metrics(summary)
    rest = msgspec.structs.replace(arm, metrics={name: own for name, own in arm.metrics.items() if name not in drawn})
    if section:
        rest, summary = msgspec.structs.replace(rest, tools=None), msgspec.structs.replace(summary, lifts=[])
    return arm_lines(summary, rest)


def run_links(run: Run) -> Links:
    """Return where the arms and pairs of a run lead: to its grid, sorted by the arm, and to their comparison."""
    positions = {arm.name: str(arm.position) for arm in run.plan_arms}
    return Links(
        arm=lambda arm: f"{url(f'/runs/{run.id}', sort=positions.get(arm, ''))}#cases",
        pair=lambda a, b: url("/compare", runs=run.id, a=a, b=b),
        kind=lambda by, kind: f"{url(f'/runs/{run.id}', **{by: kind})}#cases",
    )
