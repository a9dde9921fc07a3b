"""The Python API: thin functions, synchronous where users expect that, each with an async twin (`run`, `arun`).

Scores are 0–1 in Python. Only what you type as points is in points, as on the command line: `min_score`, and the
`delta` and `margin` of `power` and `gate`. A run may be given as an object, its id, a prefix of it, a tag, or `latest`.
"""

from __future__ import annotations

from fairtrial.api.analysing import (
    aaggregate,
    acases,
    acompare,
    acompare_models,
    agate,
    aggregate,
    amulti_run,
    apower,
    arank,
    atools,
    avariance,
    cases,
    compare,
    compare_models,
    gate,
    multi_run,
    power,
    rank,
    tools,
    variance,
)
from fairtrial.api.files import (
    aexport,
    areport,
    export,
    report,
)
from fairtrial.api.given import open_run
from fairtrial.api.judging import Labels, acalibrate, alabel, apairwise, calibrate, label, pairwise
from fairtrial.api.running import aopen_run, arescore, aresume, aretry, arun, ascore, rescore, resume, retry, run, score
from fairtrial.api.waiting import wait_for

__all__ = [
    "Labels",
    "aaggregate",
    "acalibrate",
    "acases",
    "acompare",
    "acompare_models",
    "aexport",
    "agate",
    "aggregate",
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
    "atools",
    "avariance",
    "calibrate",
    "cases",
    "compare",
    "compare_models",
    "export",
    "gate",
    "label",
    "multi_run",
    "open_run",
    "pairwise",
    "power",
    "rank",
    "report",
    "rescore",
    "resume",
    "retry",
    "run",
    "score",
    "tools",
    "variance",
    "wait_for",
]
