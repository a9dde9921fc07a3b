"""Kinds of cases, all cases at a glance, and runs of a series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from fairtrial.analyse.kind_means import KindMeans
from fairtrial.analyse.overview import Overview
from fairtrial.analyse.series import MultiRun
from fairtrial.analyse.series_summary import SeriesSummary
from fairtrial.analyse.summary import by_mean
from fairtrial.core.formatting import interval_words, number
from fairtrial.present.charts import HeatRow, RunDots, TrellisCell, TrellisRow, runs_chart, strips, trellis
from fairtrial.present.charts.marks import Tone, scaled
from fairtrial.present.charts.svg import safe
from fairtrial.present.figures.leaders import Figure, Links
from fairtrial.stats import Aggregate

_MOST_ARMS = 6  # columns that a page has room for
_MOST_KINDS = 12


def kind_figures(
    kinds: KindMeans,
    arms: Sequence[str],
    overall: Mapping[str, float | None],
    links: Links = Links(),  # noqa: B008  # immutable
) -> list[Figure]:
    """Return the means of the best arms by each attribute that divides the cases."""
    shown_arms = list(arms[:_MOST_ARMS])
    figures = []
    for by, means in kinds.means.items():
        inside = [kind for kind in means if means[kind] and kinds.cases[by][kind] < kinds.case_count]
        largest = set(sorted(inside, key=lambda kind: -kinds.cases[by][kind])[:_MOST_KINDS])
        rows = [
            TrellisRow(
                kind,
                str(kinds.cases[by][kind]),
                [_kind_cell(means[kind].get(arm), overall.get(arm)) for arm in shown_arms],
                links.kind(by, kind),
            )
            for kind in inside
            if kind in largest
        ]
        if not rows:
            continue
        means_of_arms = [None if (mean := overall.get(arm)) is None else 100 * mean for arm in shown_arms]
        left_out = [
            f"{count} more {what}"
            for count, what in (
                (len(inside) - len(rows) + kinds.left_out.get(by, 0), "groups"),
                (len(arms) - len(shown_arms), "arms"),
            )
            if count
        ]
        figures.append(Figure(by, safe(trellis(rows, shown_arms, means_of_arms, name=by)), " and ".join(left_out)))
    return figures


def _kind_cell(mean: Aggregate | None, overall: float | None) -> TrellisCell:
    """Return one mean, coloured only where its interval leaves out the arm's overall mean."""
    if mean is None or mean.mean is None:
        return TrellisCell(None, None, "–")
    tone: Tone = ""
    if mean.ci95 is not None and overall is not None:
        tone = "lead" if mean.ci95[0] > overall else "behind" if mean.ci95[1] < overall else ""
    bounds = scaled(mean.ci95, 100)
    return TrellisCell(
        100 * mean.mean, bounds, number(mean.mean, 0), interval_words(mean.ci95) if mean.ci95 else "", tone
    )


def case_strips(overview: Overview) -> Markup:
    """Return all cases, one strip per arm, hardest first."""
    rows = [
        HeatRow(
            strip.label,
            [None if value is None else 100 * value for value in strip.values],
            str(strip.low),
            f"{strip.label}: {strip.low} of {overview.cases} cases below 50",
        )
        for strip in overview.strips[:20]
    ]
    return safe(strips(rows))


def _again_words(multi: MultiRun) -> str:
    """Give the interval over runs, or say why there is none."""
    if multi.ci95 is None:
        return "one run"
    if multi.std_dev is not None and multi.std_dev < 1e-12:
        return "no run differed"
    return interval_words(multi.ci95)


def series_figure(
    summary: SeriesSummary, like: Mapping[str, Aggregate], addresses: Mapping[str, str] | None = None
) -> Markup:
    """Return a dot per run; `like` holds each arm's aggregate over the cases of all runs."""
    rows = []
    numbers = {run: place + 1 for place, run in enumerate(summary.run_ids)}
    best = sorted(summary.arms.items(), key=lambda item: by_mean(item[1].mean))
    for place, (arm, multi) in enumerate(best):
        over_cases = like[arm].ci95 if arm in like else None
        rows.append(
            RunDots(
                arm,
                100 * multi.mean,
                number(multi.mean),
                [
                    (100 * score, f"{arm}, run {numbers[run]}|{number(score)}", (addresses or {}).get(run, ""))
                    for run, score in zip(multi.run_ids, multi.scores, strict=True)
                ],
                scaled(multi.ci95, 100),
                scaled(over_cases, 100),
                _again_words(multi),
                interval_words(over_cases) if over_cases else "–",
                lead=place == 0,
            )
        )
    return safe(runs_chart(rows))
