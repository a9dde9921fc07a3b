"""fairtrial: a fair trial for every model, agent and prompt.

import fairtrial as ft

suite = ft.Suite(name="capitals", targets=["openai:gpt-6-luna", my_function],
                 cases=[ft.Case("Capital of France?", expected="Paris")])
run = ft.run(suite)  # or a path, or: await ft.arun(suite)
for arm, numbers in ft.aggregate(run).items():
    print(arm, numbers.mean, numbers.ci95)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtrial import plugins
    from fairtrial.analyse.comparison import Comparison, Comparisons
    from fairtrial.analyse.gate import Gate
    from fairtrial.analyse.items import CaseAnalysis
    from fairtrial.analyse.kind_means import KindMeans
    from fairtrial.analyse.pairs import PairsSummary
    from fairtrial.analyse.planning import Power, Variance
    from fairtrial.analyse.rank import Ranking
    from fairtrial.analyse.run import Run, RunSeries
    from fairtrial.analyse.stored_run import TrialRecord
    from fairtrial.analyse.tool_report import ToolReport
    from fairtrial.api import (
        Labels,
        aaggregate,
        acalibrate,
        acases,
        acompare,
        acompare_models,
        aexport,
        agate,
        aggregate,
        alabel,
        amulti_run,
        aopen_run,
        apairwise,
        apower,
        arank,
        areport,
        arescore,
        aresume,
        aretry,
        arun,
        ascore,
        atools,
        avariance,
        calibrate,
        cases,
        compare,
        compare_models,
        export,
        gate,
        label,
        multi_run,
        open_run,
        pairwise,
        power,
        rank,
        report,
        rescore,
        resume,
        retry,
        run,
        score,
        tools,
        variance,
    )
    from fairtrial.config import RunOptions, Suite
    from fairtrial.config.python import Case
    from fairtrial.core import errors
    from fairtrial.core.answer import Answer, Failure
    from fairtrial.core.errors import FairtrialError
    from fairtrial.core.score import Score, Unscored
    from fairtrial.judging.calibration import Calibration
    from fairtrial.pipeline import load as load_suite
    from fairtrial.tracks.interchange.api import aimport_results, aimport_traces, import_results, import_traces
    from fairtrial.tracks.optimisation.analysis import OptimisationReport
    from fairtrial.tracks.optimisation.api import astyles, styles

# Names are imported when they are used: `import fairtrial` costs nothing. Those that are not listed are in the API.
_HOMES = {
    "Answer": "fairtrial.core.answer",
    "Calibration": "fairtrial.judging.calibration",
    "Case": "fairtrial.config.python",
    "CaseAnalysis": "fairtrial.analyse.items",
    "Comparison": "fairtrial.analyse.comparison",
    "Comparisons": "fairtrial.analyse.comparison",
    "Failure": "fairtrial.core.answer",
    "FairtrialError": "fairtrial.core.errors",
    "Gate": "fairtrial.analyse.gate",
    "KindMeans": "fairtrial.analyse.kind_means",
    "OptimisationReport": "fairtrial.tracks.optimisation.analysis",
    "PairsSummary": "fairtrial.analyse.pairs",
    "Power": "fairtrial.analyse.planning",
    "Ranking": "fairtrial.analyse.rank",
    "Run": "fairtrial.analyse.run",
    "RunOptions": "fairtrial.config",
    "RunSeries": "fairtrial.analyse.run",
    "Score": "fairtrial.core.score",
    "Suite": "fairtrial.config",
    "ToolReport": "fairtrial.analyse.tool_report",
    "TrialRecord": "fairtrial.analyse.stored_run",
    "Unscored": "fairtrial.core.score",
    "Variance": "fairtrial.analyse.planning",
    "aimport_results": "fairtrial.tracks.interchange.api",
    "aimport_traces": "fairtrial.tracks.interchange.api",
    "astyles": "fairtrial.tracks.optimisation.api",
    "import_results": "fairtrial.tracks.interchange.api",
    "import_traces": "fairtrial.tracks.interchange.api",
    "styles": "fairtrial.tracks.optimisation.api",
}
_MODULES = {"errors": "fairtrial.core.errors", "plugins": "fairtrial.plugins"}

__all__ = [
    "Answer",
    "Calibration",
    "Case",
    "CaseAnalysis",
    "Comparison",
    "Comparisons",
    "Failure",
    "FairtrialError",
    "Gate",
    "KindMeans",
    "Labels",
    "OptimisationReport",
    "PairsSummary",
    "Power",
    "Ranking",
    "Run",
    "RunOptions",
    "RunSeries",
    "Score",
    "Suite",
    "ToolReport",
    "TrialRecord",
    "Unscored",
    "Variance",
    "aaggregate",
    "acalibrate",
    "acases",
    "acompare",
    "acompare_models",
    "aexport",
    "agate",
    "aggregate",
    "aimport_results",
    "aimport_traces",
    "alabel",
    "amulti_run",
    "aopen_run",
    "apairwise",
    "apower",
    "arank",
    "areport",
    "arescore",
    "aresume",
    "aretry",
    "arun",
    "ascore",
    "astyles",
    "atools",
    "avariance",
    "calibrate",
    "cases",
    "compare",
    "compare_models",
    "errors",
    "export",
    "gate",
    "import_results",
    "import_traces",
    "label",
    "load_suite",
    "multi_run",
    "open_run",
    "pairwise",
    "plugins",
    "power",
    "rank",
    "report",
    "rescore",
    "resume",
    "retry",
    "run",
    "score",
    "styles",
    "tools",
    "variance",
]


def __getattr__(name: str) -> Any:
    if name == "load_suite":
        return import_module("fairtrial.pipeline").load
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, "fairtrial.api")), name)
    raise AttributeError(f"module 'fairtrial' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
