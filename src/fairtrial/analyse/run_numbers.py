"""The numbers that the result of a run is shown with, on its page and in its report."""

from __future__ import annotations

import msgspec

from fairtrial.analyse.kind_means import KindMeans, by_kind
from fairtrial.analyse.overview import Overview, run_overview
from fairtrial.analyse.run import Run
from fairtrial.analyse.spread import ArmSpread, run_spreads
from fairtrial.analyse.summary import RunSummary, summary_prices
from fairtrial.analyse.tool_report import ToolReport, has_offers, tool_report

MOST_PAIRS = 60  # that are shown in words, with other tests; the matrix has every one


class ResultNumbers(msgspec.Struct, kw_only=True):
    """Who leads, all cases, and what each arm took."""

    summary: RunSummary
    overview: Overview
    kinds: KindMeans
    spreads: dict[str, ArmSpread] = {}
    tools: ToolReport | None = None


def result_numbers(run: Run) -> ResultNumbers:
    """Return the numbers of a run."""
    summary = run.summary()
    return ResultNumbers(
        summary=summary,
        overview=run_overview(run, summary_prices(summary)),
        kinds=by_kind(run),
        spreads=run_spreads(run),
        tools=tool_report(run) if has_offers(run) else None,
    )
