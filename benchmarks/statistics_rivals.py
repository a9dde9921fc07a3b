"""`python -m benchmarks.statistics_rivals PYTHON [EXPERIMENTS]`: other packages on the same data, in an environment of their own.

PYTHON is an interpreter that has some of `evalsig`, `errorbars`, `truescore` and `mlflow` installed (`python -m
venv X; X/bin/pip install evalsig errorbars truescore mlflow`); what is missing is left out. Each gets the same samples as ours, with
the call that its documentation names for the job. The table goes to benchmarks/STATISTICS_RIVALS.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "STATISTICS_RIVALS.md"
PAIRS = (
    "right or wrong, 5 cases", "right or wrong, 20 cases", "right or wrong, 200 cases", "marks, 10 cases", "marks, 50 cases",
    "one large in 20, 20 cases", "one large in 20, 50 cases", "8 clusters, equal", "10 clusters, lognormal sizes",
    "10 clusters, one of 60 among 3s",
)  # fmt: skip
TRUE = {  # differences that are there
    "right or wrong, 50 cases, 20 points better": lambda r: r.choice([-1.0, 0.0, 1.0], 50, p=[0.1, 0.6, 0.3]),
    "marks, 20 cases, 10 points better": lambda r: np.clip(np.subtract(*_marks(r, 20)) + 0.1, -1, 1),
    "marks, 50 cases, 10 points better": lambda r: np.clip(np.subtract(*_marks(r, 50)) + 0.1, -1, 1),
}
LABELS = ((20, 200), (20, 5000), (50, 5000), (100, 1000))


def main(python: str, count: int = 400) -> int:
    from benchmarks.regimes import pairs
    from benchmarks.statistics import mean_of
    from fairtrial.stats import Mean, corrected_share

    ours: dict[str, float] = {}
    samples: dict[str, Any] = {}
    for number, regime in enumerate(one for one in pairs() if one.what in PAIRS):
        rng = np.random.default_rng(9000 + number)
        drawn = [regime.draw(rng) for _ in range(count)]
        ours[regime.what] = float(np.mean([(mean_of(regime, sample).p_value() or 1.0) < 0.05 for sample in drawn]))
        samples[regime.what] = [
            {"d": sample.values.tolist(), "clusters": None if sample.clusters is None else sample.clusters.tolist()}
            for sample in drawn
        ]
    for number, (what, draw) in enumerate(TRUE.items()):
        rng = np.random.default_rng(9500 + number)
        drawn_d = [draw(rng) for _ in range(count)]
        found = [Mean(d, bounds=(-1.0, 1.0), span=1.0).p_value() for d in drawn_d]
        ours[what] = float(np.mean([p is not None and p < 0.05 for p in found]))
        samples[what] = [{"d": d.tolist(), "clusters": None} for d in drawn_d]
    for n, many in LABELS:
        what = f"{n} labels of {many}, judge hardly errs"
        rng = np.random.default_rng(n * many)
        rows, wrong = [], 0
        for _ in range(count):
            y = rng.random(n + many) < 0.7
            f = y | (rng.random(n + many) < 0.1)
            y, f = y.astype(float), f.astype(float)
            low, high = corrected_share(y[:n], f[:n], f[n:]).ci95 or (0.0, 1.0)
            wrong += not low <= 0.7 <= high
            rows.append({"gold": y[:n].tolist(), "passes": int(f[n:].sum()), "judge": f[:n].tolist(), "many": many})
        ours[what], samples[what] = wrong / count, rows
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(samples, file)
        file.flush()
        done = subprocess.run(
            [python, "-P", __file__, "--inside", file.name], check=True, stdout=subprocess.PIPE, text=True
        )
    RESULTS.write_text(_page(ours, json.loads(done.stdout), count), "utf-8")
    print(RESULTS.read_text("utf-8"))
    return 0


def _marks(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    from benchmarks.regimes import marks

    return marks(rng, n)


def _page(ours: dict[str, float], found: dict[str, Any], count: int) -> str:
    names = list(found["versions"])
    head = ["fairtrial", *(f"{name} {found['versions'][name]}" for name in names)]
    text = [
        "# Statistics of other packages on the same data",
        "",
        f"Written by `python -m benchmarks.statistics_rivals`, {count} experiments a line, nominal 5 %. Without a difference: how often one is",
        "seen; with labels: how often the corrected 95 % interval misses the truth; where one arm is better: how often that is",
        "found (there more is better). – means that a package has nothing for it. Where few cases carry little spread, ours is",
        "wider than t and finds less: that is the price of holding in the lines above; `--largest` buys it back.",
        "",
        "| in % | " + " | ".join(head) + " |",
        "| --- |" + " ---: |" * len(head),
    ]
    for what, share in ours.items():
        cells = [found["shares"].get(name, {}).get(what) for name in names]
        shown = [f"{100 * share:.1f}", *("–" if cell is None else f"{100 * cell:.1f}" for cell in cells)]
        text.append(f"| {what} | " + " | ".join(shown) + " |")
    return "\n".join([*text, "", found["calls"], ""])


# -- inside the other environment ------------------------------------------------------------------


def inside(path: str) -> None:
    """Every package that is there, on the samples of a file."""
    samples = json.loads(Path(path).read_text("utf-8"))
    shares: dict[str, dict[str, float]] = {}
    versions: dict[str, str] = {}
    rivals = {
        "evalsig": _evalsig,
        "errorbars": _errorbars,
        "truescore": _truescore,
        "mlflow, interval": lambda row: _mlflow(row, "interval"),
        "mlflow, p": lambda row: _mlflow(row, "p"),
        "mlflow, both differ": lambda row: _mlflow(row, "both"),
    }
    for name, trial in rivals.items():
        try:
            versions[name] = version(name.split(",")[0])
        except PackageNotFoundError:
            continue
        for what, rows in samples.items():
            told = [trial(row) for row in rows]
            known = [one for one in told if one is not None]
            if known:
                shares.setdefault(name, {})[what] = sum(known) / len(known)
    calls = (
        "Calls: `evalsig.compare(a, b, cluster=…)`, its `significant`; `errorbars.mean_ci_clt`, with clusters "
        "`cluster_robust_se` and t over clusters; `truescore.paired_bootstrap(a, b, clusters=…)`, and "
        "`truescore.ppi_estimate` for labels; MLflow's `compare_evaluations`, its interval, its p, and how often the two "
        "contradict each other."
    )
    print(json.dumps({"shares": shares, "versions": versions, "calls": calls}))


def _evalsig(row: dict[str, Any]) -> bool | None:
    import evalsig

    if "d" not in row:
        return None
    groups = row["clusters"] or [None] * len(row["d"])

    def frame(name: str, scores: list[float]) -> Any:
        items = [
            evalsig.ItemResult(str(n), score, None if group is None else str(group))
            for n, (score, group) in enumerate(zip(scores, groups, strict=True))
        ]
        return evalsig.RunFrame(name, name, "task", "score", items)

    keys = {"cluster": "cluster_id"} if row["clusters"] else {}
    try:
        found = evalsig.compare(frame("a", row["d"]), frame("b", [0.0] * len(row["d"])), n_resamples=1000, **keys)
    except evalsig.EvalsigError:
        return False  # it says that nothing can be said
    return bool(found.significant)


def _errorbars(row: dict[str, Any]) -> bool | None:
    import errorbars
    from errorbars.stats import t_for_confidence

    if "d" not in row:
        return None
    values = np.asarray(row["d"])
    if row["clusters"]:
        error = errorbars.cluster_robust_se(values, row["clusters"])
        half = t_for_confidence(0.95, len(set(row["clusters"])) - 1) * error
        return bool(abs(values.mean()) > half)
    found = errorbars.mean_ci_clt(values)
    low, high = (getattr(found, name) for name in ("ci_low", "ci_high"))
    return not low <= 0 <= high


def _truescore(row: dict[str, Any]) -> bool | None:
    import truescore

    if "d" in row:
        zeros = [0.0] * len(row["d"])
        found = truescore.paired_bootstrap(row["d"], zeros, n_bootstrap=1000, clusters=row["clusters"])
        return not found.low <= 0 <= found.high
    judge = np.r_[row["judge"], np.ones(row["passes"]), np.zeros(row["many"] - row["passes"])]
    found = truescore.ppi_estimate(judge, row["gold"], np.arange(len(row["gold"])))
    return not found.low <= 0.7 <= found.high


def _mlflow(row: dict[str, Any], what: str) -> bool | None:
    """What `compare_evaluations` says of a scorer's paired values; it knows no clusters, and fewer than six pairs."""
    from mlflow.genai.evaluation.comparison.paired_comparison import _compare_paired_values

    if "d" not in row or row["clusters"] or len(row["d"]) < 6:
        return None
    d = np.asarray(row["d"])
    binary = bool(np.isin(d, (-1.0, 0.0, 1.0)).all())
    one, other = (np.maximum(d, 0), np.maximum(-d, 0)) if binary else (d, np.zeros(len(d)))
    found = _compare_paired_values("score", other, one, value_type="binary" if binary else "numeric")
    apart, told = not found.ci_low <= 0 <= found.ci_high, found.p_value < 0.05
    return {"interval": apart, "p": told, "both": apart != told}[what]


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        inside(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1], *map(int, sys.argv[2:3])))
