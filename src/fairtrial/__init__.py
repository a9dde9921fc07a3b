"""fairtrial: a fair trial for every model, agent and prompt.

import fairtrial as ft

suite = ft.load_suite("suite.yaml")
run = ft.run(suite)
for arm, numbers in ft.aggregate(run).items():
    print(arm, numbers.mean, numbers.ci95)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtrial.analyse import Run, TrialRecord
    from fairtrial.api import (
        aggregate,
        arun,
        calibrate,
        compare,
        compare_models,
        multi_run,
        open_run,
        rescore,
        resume,
        retry,
        run,
        score,
    )
    from fairtrial.config import RunOptions, Suite
    from fairtrial.config.python import Case
    from fairtrial.core.answer import Answer, Failure
    from fairtrial.core.errors import FairtrialError
    from fairtrial.core.score import Score, Unscored
    from fairtrial.pipeline import load as load_suite

# Names are imported when they are used: `import fairtrial` costs nothing.
_HOMES = {
    "load_suite": "fairtrial.pipeline:load",
    "run": "fairtrial.api:run",
    "arun": "fairtrial.api:arun",
    "resume": "fairtrial.api:resume",
    "retry": "fairtrial.api:retry",
    "rescore": "fairtrial.api:rescore",
    "open_run": "fairtrial.api:open_run",
    "score": "fairtrial.api:score",
    "aggregate": "fairtrial.api:aggregate",
    "calibrate": "fairtrial.api:calibrate",
    "multi_run": "fairtrial.api:multi_run",
    "compare": "fairtrial.api:compare",
    "compare_models": "fairtrial.api:compare_models",
    "Run": "fairtrial.analyse:Run",
    "TrialRecord": "fairtrial.analyse:TrialRecord",
    "RunOptions": "fairtrial.config:RunOptions",
    "Suite": "fairtrial.config:Suite",
    "Case": "fairtrial.config.python:Case",
    "Score": "fairtrial.core.score:Score",
    "Unscored": "fairtrial.core.score:Unscored",
    "Answer": "fairtrial.core.answer:Answer",
    "Failure": "fairtrial.core.answer:Failure",
    "FairtrialError": "fairtrial.core.errors:FairtrialError",
}

__all__ = [
    "Answer",
    "Case",
    "Failure",
    "FairtrialError",
    "Run",
    "RunOptions",
    "Score",
    "Suite",
    "TrialRecord",
    "Unscored",
    "aggregate",
    "arun",
    "calibrate",
    "compare",
    "compare_models",
    "load_suite",
    "multi_run",
    "open_run",
    "rescore",
    "resume",
    "retry",
    "run",
    "score",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        module, _, attribute = _HOMES[name].partition(":")
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'fairtrial' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
