"""Further figures of a report: distribution of scores, differences between repeats, sources of uncertainty, judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fairtrial.analyse.battles import By
from fairtrial.analyse.rank import Ranking, rank
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.analyse.summary import RunSummary, repeat_deviations
from fairtrial.analyse.variance import arm_variances
from fairtrial.core.errors import FairtrialError
from fairtrial.present.charts import Box, ForestRow, Point, agreement, boxes, shares, small_forest
from fairtrial.present.charts.svg import safe
from fairtrial.present.figures.leaders import Figure
from fairtrial.present.words.ranks import rank_words, ranking_headline, rating_cells
from fairtrial.store import opinions, totals
from fairtrial.store.calibrations import calibrations_of
from fairtrial.store.rows import decode
from fairtrial.store.votes import votes

_MOST_SAMPLES = 400  # of a judge: more dots cover each other
_FAR = 1000.0  # rating points from the middle beyond which an interval has no end


def figures(run: Run, summary: RunSummary, order: Sequence[str]) -> list[Figure]:
    """Draw every figure that this run has numbers for; `order` are the arms, the best first."""
    positions = {arm.name: arm.position for arm in run.plan_arms}
    parts: list[Callable[[], Iterator[Figure]]] = [
        lambda: _distributions(run, {arm: positions[arm] for arm in order}),
        lambda: _repeats(run, {arm: positions[arm] for arm in order}),
        lambda: _variance(run),
        lambda: _calibration(run, summary),
    ]
    return [figure for part in parts for figure in part()]


def _distributions(run: Run, arms: dict[str, int]) -> Iterator[Figure]:
    """Show which share of the answers has full marks, more than half, or less."""
    counts = totals.score_shares(run.store, run.id, run.record.scoring)
    rows = []
    for arm, position in arms.items():
        if position in counts:
            scored, full, low = counts[position]
            rows.append((arm, (full / scored, (scored - full - low) / scored, low / scored)))
    if rows:
        yield Figure("Distribution of scores", safe(shares(rows, ("100", "50 to 99", "below 50"))), "Share of answers")


def _repeats(run: Run, arms: dict[str, int]) -> Iterator[Figure]:
    """Show how much answers to the same case differ; 0 means a reliable arm."""
    scores = totals.case_scores(run.store, run.id, run.plan.id, run.record.scoring)
    rows = []
    for arm, position in arms.items():
        spread = 100 * repeat_deviations(scores.get(position))
        if len(spread):
            low, lower, middle, upper, high = map(float, np.percentile(spread, [5, 25, 50, 75, 95]))
            rows.append(Box(arm, (low, lower, middle, upper, high), f"{middle:.1f}"))
    if rows:
        words = (
            "Standard deviation between the answers to one case, in points: middle half and middle 90 % of the cases"
        )
        yield Figure("Differences between repeats", safe(boxes(rows, name="Median")), words)


def _variance(run: Run) -> Iterator[Figure]:
    try:
        arms = arm_variances(run)
    except FairtrialError:
        return  # nothing varies
    parts = ("cases", "repeats", "judges")
    apart = all(arm.shares["repeat"] is not None for arm in arms)
    rows = [(arm.label, tuple(arm.shares[key] or 0.0 for key in ("case", "repeat", "judge"))) for arm in arms]
    words = "Share of the variance of each mean"
    if not apart:
        words += "; without repeats, that of cases contains that of repeats"
    yield Figure("Where the uncertainty comes from", safe(shares(rows, parts)), words)


def _calibration(run: Run, summary: RunSummary) -> Iterator[Figure]:
    """Show the scores that each judge gave to samples with a known score."""
    for judge, key, prompt in opinions.judges_asked(run.store, run.id, run.record.scoring) if summary.judging else ():
        rows = calibrations_of(run.store, key) if key else []
        row = next((row for row in rows if row["prompt_hash"] == prompt), rows[0] if rows else None)
        points = [
            Point(
                judge,
                100 * sample["expected"],
                100 * sample["actual"],
                tip=f"gave {100 * sample['actual']:.0f}|known score {100 * sample['expected']:.0f}",
            )
            for sample in (decode(row["body"])["samples"] if row else ())
            if sample["actual"] is not None
        ]
        if points:
            html = safe(agreement(points[:_MOST_SAMPLES], x_name="known score", y_name="score of the judge"))
            yield Figure(f"Judge {judge} against known scores", html, "On the dashed line, both agree")


def ranking(run: Run) -> Figure | None:
    """Draw the ranking by pairs, if answers were compared in pairs by judges or people."""
    judged = next(opinions.pairs(run.store, run.id), None) is not None
    voted = next(votes(run.store, run.id), None) is not None
    if not judged and not voted:
        return None
    try:
        by: By = "both" if judged and voted else "verdicts" if judged else "votes"
        found = rank(read_scores(sources_of(run)), by=by)
    except FairtrialError:
        return None  # with fewer than two arms on common cases there is no ranking
    return ranking_figure(found)


def ranking_figure(found: Ranking) -> Figure:
    """Draw ratings with their intervals."""
    rows = []
    for place in found.places:
        bounds = place.rating_ci95
        bounded = bounds is not None and all(abs(end - 1000) < _FAR for end in bounds)
        rating, interval = rating_cells(place)
        rows.append(
            ForestRow(place.label, place.rating, bounds if bounded else None, rating, interval, rank=rank_words(place))
        )
    html = safe(small_forest(rows, name="Arm and rank", number_name="Rating"))
    words = ranking_headline(found)
    return Figure("Preferred in pairs", html, f"{words[0].upper()}{words[1:]}")
