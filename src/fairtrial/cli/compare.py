"""`fairtrial compare`."""

from __future__ import annotations

import click

from fairtrial.cli.options import (
    Margin,
    from_points,
    json_option,
    metric_key,
    open_store,
    option,
    print_json,
    store_option,
)


@click.command()
@click.argument("runs", nargs=-1)
@option("--arms", nargs=2, metavar="A B", help="Only these two arms; ARM@RUN if several runs have one.")
@option("--metric", metavar="M", help="Metric to compare; default: the suite's primary metric, or the score.")
@option("--margin", type=Margin(), help="Differences smaller than this do not matter.")
@option("--largest", type=click.FloatRange(min=0, min_open=True), help="Largest difference possible on one case.")
@option("--earlier", metavar="RUN", help="A run of the same arms on more cases, to reduce the variance.")
@option("--details", is_flag=True, help="Also show other tests and groups of cases, for every pair.")
@store_option
@json_option
def command(
    runs: tuple[str, ...],
    arms: tuple[str, str] | None,
    metric: str | None,
    margin: float | None,
    largest: float | None,
    earlier: str | None,
    details: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Say which of two arms is better, or that nobody can tell yet.

    RUNS are runs, series or tags; NAME@STORE reads one from another store. In one run, every pair of arms is compared;
    in several runs, the same arm in each of them. Two --arms that are in several runs are compared over all of them.
    Differences are first minus second, on the cases that both have.
    """
    from fairtrial.analyse.compare import compare
    from fairtrial.analyse.score_table import choose, find_sources, pooled, read_scores
    from fairtrial.cli.display import print_comparisons
    from fairtrial.reports.json import comparison_document

    opened = open_store(store)
    scores = read_scores(pooled(find_sources(runs, opened), arms or ()))
    by = scores.primary if metric is None else metric_key(metric)
    comparisons = compare(
        scores,
        choose(scores, arms or ()),
        metric=by,
        margin=from_points(margin, by),
        largest=from_points(largest, by),
        earlier=read_scores(find_sources([earlier], opened)) if earlier else None,
    )
    if as_json:
        print_json(comparison_document(comparisons))
    else:
        print_comparisons(comparisons, details=details)
