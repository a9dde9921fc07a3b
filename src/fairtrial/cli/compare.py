"""`fairtrial compare`."""

from __future__ import annotations

import click

from fairtrial.cli.options import json_option, open_store, option, own_scale, print_json, score_named, store_option


@click.command()
@click.argument("runs", nargs=-1)
@option("--arms", nargs=2, metavar="A B", help="Only these two; ARM@RUN where several runs have one.")
@option("--metric", metavar="M", help="Compare by this metric; else by the suite's primary one, or the score.")
@option("--margin", type=click.FloatRange(min=0, min_open=True), help="Differences below it do not matter.")
@option("--largest", type=click.FloatRange(min=0, min_open=True), help="No case can differ by more than this.")
@option("--earlier", metavar="RUN", help="A run of the same arms on more cases, to lower the variance.")
@option("--details", is_flag=True, help="Other tests and kinds of cases, for every pair.")
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

    RUNS are runs, series or tags; NAME@STORE takes one from another store. Of one run every two arms are compared, of
    several the same arm in each of them; two --arms that are in several runs are compared over all of them. Differences
    are first minus second, on the cases that both have.
    """
    from fairtrial.analyse.compare import compare
    from fairtrial.analyse.score_table import choose, find_sources, pooled, read_scores
    from fairtrial.cli.display import print_comparisons
    from fairtrial.reports.json import comparison_document

    opened = open_store(store)
    scores = read_scores(pooled(find_sources(runs, opened), arms or ()))
    by = scores.primary if metric is None else score_named(metric)
    found = compare(
        scores,
        choose(scores, arms or ()),
        metric=by,
        margin=own_scale(margin, by),
        largest=own_scale(largest, by),
        earlier=read_scores(find_sources([earlier], opened)) if earlier else None,
    )
    if as_json:
        print_json(comparison_document(found))
    else:
        print_comparisons(found, details=details)
