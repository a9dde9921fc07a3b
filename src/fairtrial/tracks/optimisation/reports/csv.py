"""CSV: the table with plain numbers, a row for each style, kind of problems and measure, then every pair."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from fairtrial.analyse.comparison import Comparison
from fairtrial.analyse.comparison import KindDifference as Kind
from fairtrial.reports.csv import cell
from fairtrial.tracks.optimisation.analysis import KINDS, OptimisationReport, Slice, StyleResult

COLUMNS = (
    "row", "arm", "target", "style", "against", "by", "problems", "measure", "mean", "sd_between_problems",
    "sd_within_problems", "ci95_low", "ci95_high", "median", "p_holm", "p_paired_t", "verdict",
    "problem_count", "answers",
)  # fmt: skip
Fields = dict[str, object]


def render(report: OptimisationReport) -> str:
    """Return the whole table; what models are called is kept from becoming a formula."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, restval="", quoting=csv.QUOTE_NONNUMERIC)
    writer.writeheader()
    for fields in (*_means(report), *_pairs(report)):
        writer.writerow({name: "" if value is None else cell(value) for name, value in fields.items()})
    return file.getvalue()


def _means(report: OptimisationReport) -> Iterator[Fields]:
    for arm in report.arms:
        yield from _slice(arm, "all", "all", arm.overall)
        for by in KINDS:
            for kind, part in arm.by[by].items():
                yield from _slice(arm, by, kind, part)


def _slice(arm: StyleResult, by: str, kind: str, part: Slice) -> Iterator[Fields]:
    about: Fields = {"row": "mean", "arm": arm.arm, "target": arm.target, "style": arm.style, "by": by}
    about |= {"problems": kind, "answers": part.trials}
    for measure, one in part.cells.items():
        yield {
            **about,
            "measure": measure,
            "mean": one.mean,
            "sd_between_problems": one.std_dev,
            "sd_within_problems": one.within,
            **_limits(one.ci95),
            "median": one.median,
            "problem_count": one.problems,
        }


def _pairs(report: OptimisationReport) -> Iterator[Fields]:
    if report.comparisons is None:
        return
    for pair in (*report.comparisons.pairs, *report.comparisons.metrics):
        yield {"by": "all", "problems": "all", "p_holm": pair.p_adjusted, **_difference(pair, pair)}
        if (here := pair.on_this_case) is not None:
            yield {
                **_difference(pair, pair),
                "by": "answers",
                "problems": "on this instance",
                "p_holm": here.p_adjusted,
                "p_paired_t": here.test.paired_p_value,
                **_limits(here.test.ci95),
                "verdict": here.verdict,
                "answers": here.test.count_a + here.test.count_b,
            }
        for kind in pair.groups:
            yield {"by": kind.by, "problems": kind.value, "p_holm": kind.p_value, **_difference(pair, kind)}


def _difference(pair: Comparison, part: Comparison | Kind) -> Fields:
    return {
        "row": "difference",
        "arm": pair.a,
        "against": pair.b,
        "measure": pair.metric,
        "mean": part.difference,
        **_limits(part.ci95),
        "p_paired_t": part.paired_t.p_value if part.paired_t else None,
        "verdict": part.verdict,
        "problem_count": part.count,
    }


def _limits(bounds: tuple[float, float] | None) -> Fields:
    return {"ci95_low": None, "ci95_high": None} if bounds is None else {"ci95_low": bounds[0], "ci95_high": bounds[1]}
