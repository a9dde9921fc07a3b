"""Results in a few words, as Python shows them: `<Gate passed>`."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from fairtrial.analyse.comparison import Comparison, Comparisons
from fairtrial.analyse.gate_result import Gate
from fairtrial.analyse.items import CaseAnalysis
from fairtrial.analyse.kind_means import KindMeans
from fairtrial.analyse.pairs import PairsSummary
from fairtrial.analyse.planning import Power
from fairtrial.analyse.rank import Ranking
from fairtrial.analyse.run import RunSeries
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.analyse.tool_report import ToolReport
from fairtrial.analyse.variance import Variance
from fairtrial.judging.calibration import Calibration
from fairtrial.present.words.comparisons import sentence
from fairtrial.present.words.gates import check_line
from fairtrial.text.printable import counted


@singledispatch
def in_brief(result: Any) -> str:
    """Describe a result."""
    raise TypeError(f"no one has said how to describe a {type(result).__name__}")


@in_brief.register
def _run(run: StoredRun) -> str:
    return f"Run {run.id} {run.record.suite_name} {run.status}"


@in_brief.register
def _series(series: RunSeries) -> str:
    return f"Series {series.id}: {counted(len(series), 'run')} of {series[0].record.suite_name}"


@in_brief.register
def _comparison(pair: Comparison) -> str:
    return f"Comparison {sentence(pair)}"


@in_brief.register
def _comparisons(found: Comparisons) -> str:
    first = ", ".join(f"{pair.a} {pair.verdict} {pair.b}" for pair in found.pairs[:5])
    return f"Comparisons of {counted(len(found.pairs), 'pair')}: {first}"


@in_brief.register
def _ranking(ranking: Ranking) -> str:
    places = ", ".join(f"{place.rank} {place.label}" for place in ranking.places)
    return f"Ranking by {ranking.by} on {counted(ranking.cases, 'case')}: {places}"


@in_brief.register
def _gate(gate: Gate) -> str:
    reasons = "; ".join(check_line(check) for check in gate.checks if check.result != "passed")
    return f"Gate {gate.result}{': ' if reasons else ''}{reasons}"


@in_brief.register
def _power(power: Power) -> str:
    pairs = ", ".join(f"{pair.a} against {pair.b}" for pair in power.pairs)
    return f"Power {1 - power.beta:g}: {pairs}"


@in_brief.register
def _variance(variance: Variance) -> str:
    return f"Variance {'; '.join(f'{arm.label}: {arm.advice}' for arm in variance.arms)}"


@in_brief.register
def _cases(analysis: CaseAnalysis) -> str:
    return f"CaseAnalysis of {counted(len(analysis.cases), 'case')}"


@in_brief.register
def _kinds(kinds: KindMeans) -> str:
    return f"KindMeans {'; '.join(f'by {by}: ' + ', '.join(means) for by, means in kinds.means.items())}"


@in_brief.register
def _pairs(summary: PairsSummary) -> str:
    judges = counted(len(summary.judges), "judge")
    return f"Pairwise {summary.run_id}: {counted(len(summary.pairs), 'pair')}, {judges}"


@in_brief.register
def _tools(report: ToolReport) -> str:
    gains = (f"{' + '.join(name for _, name in one.what)} {one.score.verdict}" for one in report.gains[:5])
    scored = [one for one in report.versions[:5] if one.score]
    versions = (f"{one.arm} against {one.baseline} {one.score.verdict}" for one in scored if one.score)
    return f"ToolReport of {report.run_id}: {', '.join((*gains, *versions)) or 'no gains'}"


@in_brief.register
def _calibration(found: Calibration) -> str:
    return f"Calibration {found.summary.judge}: {found.rating}, {found.summary.passed} of {found.summary.total}"
