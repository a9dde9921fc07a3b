"""The figures of the HTML report: turn the numbers of a run into rows for `charts`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from statistics import stdev

import msgspec
import numpy as np

from fairtrial.analyse import Run
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.planning import arm_variances
from fairtrial.analyse.summary import RunSummary, ranked
from fairtrial.analyse.wording.comparisons import Scale
from fairtrial.core.errors import FairtrialError
from fairtrial.reports import charts
from fairtrial.reports.charts import Figure, Sketch, short
from fairtrial.store import totals
from fairtrial.store.rows import decode

_MAX_PAIRS = 30


def figures(run: Run, summary: RunSummary, compared: Comparisons | None) -> list[Figure]:
    """Draw every figure that this run has numbers for."""
    positions = [arm.position for arm in run.plan_arms]
    scores = totals.trial_scores(run.store, run.id, run.plan.id, run.record.scoring, positions)
    summary = msgspec.structs.replace(summary, arms=ranked(summary.arms))
    names = {arm.name: arm.position for arm in run.plan_arms}
    values = {arm.arm: list(scores[names[arm.arm]].by_case.values()) for arm in summary.arms}
    drawn = charts.draw(
        [
            *_means(summary),
            *_differences(compared),
            *_score_and_cost(summary),
            *_distributions(values),
            *_repeats(values),
            *_variance(run),
            *_calibration(run, summary),
        ]
    )
    for figure in drawn:
        if figure.svg is None and not figure.missing:
            warnings.warn(
                f"the figure `{figure.title}` could not be drawn; the report describes it in words", stacklevel=2
            )
    return drawn


def _means(summary: RunSummary) -> Iterator[Sketch]:
    rows = []
    for arm in summary.arms:
        bounds = arm.aggregate.ci95
        rows.append(
            {
                "label": short(arm.arm),
                "value": None if arm.aggregate.mean is None else 100 * arm.aggregate.mean,
                "low": None if bounds is None else 100 * bounds[0],
                "high": None if bounds is None else 100 * bounds[1],
            }
        )
    if any(row["value"] is not None for row in rows):
        yield charts.forest("Mean scores with 95 % intervals", rows, axis="score")


def _differences(compared: Comparisons | None) -> Iterator[Sketch]:
    pairs = [pair for pair in compared.pairs if pair.difference is not None] if compared else []
    scale = Scale(compared.metric if compared else "")
    rows = [
        {
            "label": f"{short(pair.a, 28)} − {short(pair.b, 28)}",
            "value": scale.factor * (pair.difference or 0.0),
            "low": None if pair.ci95 is None else scale.factor * pair.ci95[0],
            "high": None if pair.ci95 is None else scale.factor * pair.ci95[1],
            "group": pair.verdict,
        }
        for pair in pairs[:_MAX_PAIRS]
    ]
    if rows:
        more = f" (the first {_MAX_PAIRS} of {len(pairs)})" if len(pairs) > _MAX_PAIRS else ""
        yield charts.forest(
            f"Differences on the same cases{more}",
            rows,
            axis=f"{scale.unit.removeprefix(' in ').strip()}, first minus second",
            zero=True,
        )


def _score_and_cost(summary: RunSummary) -> Iterator[Sketch]:
    """Plot score against cost if it is known, otherwise against latency."""
    scored = [(arm, 100 * arm.aggregate.mean) for arm in summary.arms if arm.aggregate.mean is not None]
    paid = [(arm, mean) for arm, mean in scored if arm.cost_usd]
    if paid:
        rows = [
            {"label": short(arm.arm), "x": (arm.cost_usd or 0.0) / max(1, arm.scored), "y": mean} for arm, mean in paid
        ]
        yield charts.scatter("Score and cost", rows, x_axis="USD per answer", y_axis="score")
    timed = [(arm, mean) for arm, mean in scored if (arm.latency_ms.p50 or 0.0) >= 1]
    if timed and not paid:
        rows = [{"label": short(arm.arm), "x": (arm.latency_ms.p50 or 0.0) / 1000, "y": mean} for arm, mean in timed]
        yield charts.scatter("Score and latency", rows, x_axis="median seconds", y_axis="score")


def _distributions(values: dict[str, list[list[float]]]) -> Iterator[Sketch]:
    rows = []
    for arm, cases in values.items():
        rows += _bins(short(arm), 100 * np.asarray([value for scores in cases for value in scores]), 100.0, 10)
    if rows:
        yield charts.histogram("Distribution of scores", rows, axis="score")


def _repeats(values: dict[str, list[list[float]]]) -> Iterator[Sketch]:
    """Plot how much answers to the same case differ; 0 means a reliable arm."""
    rows = []
    for arm, cases in values.items():
        rows += _bins(short(arm), 100 * np.asarray([stdev(scores) for scores in cases if len(scores) > 1]), 80.0, 8)
    if any(row["count"] for row in rows):
        title = "Differences between repeats of the same case"
        yield charts.histogram(title, rows, axis="standard deviation between repeats, points")


def _bins(
    label: str, values: np.ndarray[tuple[int], np.dtype[np.float64]], largest: float, bins: int
) -> list[charts.Row]:
    if not len(values):
        return []
    counts, edges = np.histogram(np.clip(values, 0, largest), bins=bins, range=(0, largest))
    return [
        {"label": label, "bin": f"{edges[n]:g}–{edges[n + 1]:g}", "count": int(count)} for n, count in enumerate(counts)
    ]


def _variance(run: Run) -> Iterator[Sketch]:
    try:
        arms = arm_variances(run)
    except FairtrialError:
        return  # nothing varies
    names = {"case": "cases", "repeat": "repeats", "judge": "judges"}
    unknown = "cases and repeats, not separable"
    rows = [
        {
            "label": short(arm.label),
            "part": unknown if part == "case" and arm.shares["repeat"] is None else names[part],
            "share": share,
        }
        for arm in arms
        for part, share in arm.shares.items()
        if share is not None
    ]
    yield charts.shares(
        "Where the uncertainty comes from",
        rows,
        order=[name for name in (*names.values(), unknown) if any(row["part"] == name for row in rows)],
    )


def _calibration(run: Run, summary: RunSummary) -> Iterator[Sketch]:
    from fairtrial.store.opinions import judges_asked

    rows = []
    for judge, key, prompt in judges_asked(run.store, run.id, run.record.scoring) if summary.judging else ():
        calibrations = run.store.calibrations(key) if key else []
        row = next(
            (row for row in calibrations if row["prompt_hash"] == prompt), calibrations[0] if calibrations else None
        )
        for sample in decode(row["body"])["samples"] if row else ():
            if sample["actual"] is not None:
                rows.append({"judge": judge, "right": 100 * sample["expected"], "given": 100 * sample["actual"]})
    if rows:
        yield charts.calibration("Judges' scores on samples with a known score", rows)
