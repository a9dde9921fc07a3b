"""fairtrial: a fair trial for every model, agent and prompt.

import fairtrial as ft

suite = ft.Suite(name="capitals", targets=["openai:gpt-6-luna", my_function],
                 cases=[ft.Case("Capital of France?", expected="Paris")])
run = ft.run(suite)  # or a path, or: await ft.arun(suite)
for arm, numbers in ft.aggregate(run).items():
    print(arm, numbers.mean, numbers.ci95)
"""

from importlib import import_module
from typing import Any

# The public names: `import fairtrial` costs nothing, since each is imported when it is used. `python -m docs.generate`
# writes them with their types into `__init__.pyi`, which type checkers and editors read instead of this file.
_HOMES = {
    "fairtrial.analyse.comparison": ("Comparison", "Comparisons"),
    "fairtrial.analyse.gate": ("Gate",),
    "fairtrial.analyse.items": ("CaseAnalysis",),
    "fairtrial.analyse.kind_means": ("KindMeans",),
    "fairtrial.analyse.pairs": ("PairsSummary",),
    "fairtrial.analyse.planning": ("Power",),
    "fairtrial.analyse.variance": ("Variance",),
    "fairtrial.analyse.rank": ("Ranking",),
    "fairtrial.analyse.run": ("Run", "RunSeries"),
    "fairtrial.analyse.stored_run": ("TrialRecord",),
    "fairtrial.analyse.tool_report": ("ToolReport",),
    "fairtrial.api.judging": ("Labels",),
    "fairtrial.config": ("RunOptions", "Suite"),
    "fairtrial.config.python": ("Case",),
    "fairtrial.core.answer": ("Answer", "Failure"),
    "fairtrial.core.errors": ("FairtrialError",),
    "fairtrial.core.score": ("Score", "Unscored"),
    "fairtrial.judging.calibration": ("Calibration",),
    "fairtrial.tracks.audit.result": ("Audit",),
    "fairtrial.tracks.optimisation.analysis": ("OptimisationReport",),
}
_VERBS = {  # each has an async twin, with an `a` before its name
    "fairtrial.api.analysing": (
        *("aggregate", "cases", "compare", "compare_models", "gate", "multi_run", "power", "rank", "tools", "variance"),
    ),
    "fairtrial.api.files": ("export", "report"),
    "fairtrial.api.given": ("open_run",),
    "fairtrial.api.judging": ("calibrate", "label", "pairwise"),
    "fairtrial.api.running": ("rescore", "resume", "retry", "run", "score"),
    "fairtrial.tracks.audit.api": ("audit",),
    "fairtrial.tracks.interchange.api": ("import_log", "import_results", "import_traces"),
    "fairtrial.tracks.optimisation.api": ("styles",),
}
_MODULES = {"errors": "fairtrial.core.errors", "plugins": "fairtrial.plugins"}
_HOME_OF = {
    **{name: home for home, names in _HOMES.items() for name in names},
    **{name: home for home, verbs in _VERBS.items() for verb in verbs for name in (verb, f"a{verb}")},
}

__all__ = sorted([*_HOME_OF, *_MODULES, "load_suite"])  # noqa: PLE0605 (it is a list)


def __getattr__(name: str) -> Any:
    if name == "load_suite":
        return import_module("fairtrial.pipeline").load
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'fairtrial' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
