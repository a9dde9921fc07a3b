"""Does a gate keep what its plan promises? `python -m benchmarks.gates [MERGES]`: simulated projects, merge by merge.

Every merge is two sets of answers, decided by the interval that `fairtrial gate` uses; the plan is made from the earlier
set alone. One merge of each kind goes through the product itself (import and `gate`), which must say the same.
Beside it stand what teams use instead: block if the mean fell by more than the margin, and McNemar's test at 5 % on the
first answers. The table goes to benchmarks/GATES.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

RESULTS = Path(__file__).parent / "GATES.md"
Floats = NDArray[np.float64]
_REPEATS = 3
_PLANS = 12  # for each kind of merge: a plan takes seconds, and they are much alike
_THROUGH = 200  # every so many merges, one goes through the product


class Project(NamedTuple):
    """A project: how many cases, how noisy, how its losses look, and the margin of its gate."""

    name: str
    cases: int
    margin: float
    marks: bool  # whether a judge gives marks; else right or wrong
    flaky: float = 0.0  # the share of cases that are a coin toss


class Row(NamedTuple):
    """What was promised and seen for one kind of merge."""

    project: str
    merge: str
    promised: tuple[float, float, float]
    seen: tuple[float, float, float]
    threshold: float
    mcnemar: float


PROJECTS = (
    Project("right or wrong, 150 cases", 150, 0.10, marks=False),
    Project("right or wrong, 150 cases, 15 % flaky", 150, 0.10, marks=False, flaky=0.15),
    Project("marks of a judge, 80 cases", 80, 0.05, marks=True),
    Project("right or wrong, 40 cases, 15 % flaky", 40, 0.10, marks=False, flaky=0.15),
)
_LOSSES = (0.0, 0.5, 2.0)  # in margins
_NAMES = {0.0: "changes nothing", 0.5: "loses half the margin", 2.0: "loses twice the margin"}


def main(merges: int = 200) -> int:
    """Simulate every project and write the table."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rows: list[Row] = []
        for number, project in enumerate(PROJECTS):
            for row in simulate(project, merges, number):
                rows.append(row)
                print(row, flush=True)
    RESULTS.write_text(_page(rows, merges), "utf-8")
    print(RESULTS.read_text("utf-8"))
    return 0


def simulate(project: Project, merges: int, seed: int) -> Iterator[Row]:
    """Yield one row for each kind of merge of a project."""
    from fairtrial.stats import mcnemar
    from fairtrial.stats.merges import chances

    rng = np.random.default_rng(seed)
    for loss in _LOSSES:
        seen: Counter[str] = Counter()
        promised = np.zeros(3)
        blocked = {"threshold": 0, "mcnemar": 0}
        for number in range(merges):
            truth = _truth(project, rng)
            before = _answers(project, truth, rng)
            after = _answers(project, _broken(truth, loss * project.margin, rng), rng)
            result = _decided(before, after, project.margin)
            seen[result] += 1
            blocked["threshold"] += float(after.mean() - before.mean()) < -project.margin
            first = mcnemar(before[:, 0] >= 0.5, after[:, 0] >= 0.5)
            blocked["mcnemar"] += first.p_value < 0.05 and after[:, 0].mean() < before[:, 0].mean()
            if number % (merges // _PLANS or 1) == 0 and number < _PLANS * (merges // _PLANS or 1):
                terms = {"margin": project.margin, "repeats": _REPEATS, "before": _REPEATS}
                plan = chances(_noise(before), loss * project.margin, **terms, merges=200)  # type: ignore[arg-type]
                promised += np.asarray([plan.passed, plan.failed, plan.unsure]) / min(_PLANS, merges)
            if number % _THROUGH == 0:
                _check_product(project, before, after, result)
        yield Row(
            project=project.name,
            merge=_NAMES[loss],
            promised=tuple(promised),
            seen=tuple(seen[name] / merges for name in ("passed", "failed", "cannot tell")),  # type: ignore[arg-type]
            threshold=blocked["threshold"] / merges,
            mcnemar=blocked["mcnemar"] / merges,
        )


def _decided(before: Floats, after: Floats, margin: float) -> str:
    """Decide by the gate's rule: the interval of the paired difference, against −margin and 0."""
    from fairtrial.stats.mean import ALPHA
    from fairtrial.stats.paired import mean_difference

    difference = mean_difference(after.mean(axis=1), before.mean(axis=1))
    if 2 * difference.p_above(-margin) < ALPHA:  # the lower limit of the interval is above it
        return "passed"
    return "failed" if 2 * difference.p_below(0.0) < ALPHA else "cannot tell"


def _noise(before: Floats) -> Any:
    from fairtrial.stats.merges import noise_of

    counts = np.full(len(before), before.shape[1])
    return noise_of(counts, before.sum(axis=1), (before**2).sum(axis=1), np.ones(len(before)))


def _check_product(project: Project, before: Floats, after: Floats, result: str) -> None:
    """Raise unless the product decides as the simulation does."""
    import fairtrial as ft
    from fairtrial.analyse.gate import Terms, gate
    from fairtrial.analyse.score_table import sources_of

    runs = [ft.import_results(_frame(scores), case="case", arm="arm", score="score") for scores in (before, after)]
    old, new = (sources_of(run)[0] for run in runs)
    found = gate(new, old, Terms(margin=project.margin)).result
    if found != result:
        raise AssertionError(f"{project.name}: the product says {found}, the simulation {result}")


def _truth(project: Project, rng: np.random.Generator) -> Floats:
    """Return how good the arm is on every case: mostly right, some cases hard, some a coin toss."""
    truth = rng.beta(4, 1, project.cases) if project.marks else np.where(rng.random(project.cases) < 0.85, 0.98, 0.05)
    return np.asarray(np.where(rng.random(project.cases) < project.flaky, 0.5, truth))


def _broken(truth: Floats, loss: float, rng: np.random.Generator) -> Floats:
    return np.asarray(np.where(rng.random(len(truth)) < loss / truth.mean(), 0.0, truth))


def _answers(project: Project, truth: Floats, rng: np.random.Generator) -> Floats:
    """Return cases × repeats; a judge's marks vary from answer to answer by 10 points."""
    if project.marks:
        return np.asarray(np.clip(truth[:, None] + 0.1 * rng.standard_normal((len(truth), _REPEATS)), 0, 1))
    return np.asarray(rng.random((len(truth), _REPEATS)) < truth[:, None], dtype=np.float64)


def _frame(scores: Floats) -> pd.DataFrame:
    cases, repeats = scores.shape
    return pd.DataFrame(
        {"case": np.repeat([f"case-{n}" for n in range(cases)], repeats), "arm": "bot", "score": scores.ravel()}
    )


def _page(rows: list[Row], merges: int) -> str:
    lines = [
        "# Gates on simulated merges",
        "",
        f"`python -m benchmarks.gates {merges}`: {merges} merges of each kind, {_REPEATS} answers to a case before and after. "
        f"Promised is the mean of {_PLANS} plans (`gate --plan`), each made from one of the earlier runs.",
        "",
        "| project | a merge that | promised: passed / blocked / cannot tell | seen | threshold blocks | McNemar blocks |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        shares = [" / ".join(f"{100 * share:.0f} %" for share in part) for part in (row.promised, row.seen)]
        lines.append(
            f"| {row.project} | {row.merge} | {shares[0]} | {shares[1]} | {100 * row.threshold:.0f} % "
            f"| {100 * row.mcnemar:.0f} % |"
        )
    lines += [
        "",
        "A merge that changes nothing should pass: what is blocked there is a false block. One that loses twice the margin must "
        "not pass: what passes there is a missed loss. In between, a loss that the interval shows is blocked unless it is surely "
        "smaller than the margin. The threshold and McNemar's test block or let pass; they never say that they cannot tell, "
        "so a loss that they do not block has passed.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main(*(int(argument) for argument in sys.argv[1:])))
