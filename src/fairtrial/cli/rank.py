"""`fairtrial rank`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, metric_key, open_store, option, print_json, store_option

if TYPE_CHECKING:
    from rich.table import Table

    from fairtrial.analyse.rank import Ranking, WinMatrix


@click.command()
@click.argument("runs", nargs=-1)
@option(
    "--by",
    type=click.Choice(["scores", "verdicts", "votes", "both"]),
    help="Source of the ratings; default: the first available of verdicts, votes and scores.",
)
@option("--control-style", is_flag=True, help="Adjust ratings for the length and markup of answers.")
@option("--metric", metavar="M", help="Metric to rank by; default: the suite's primary metric, or the score.")
@option("--matrix", is_flag=True, help="Show how often each arm beat each other arm.")
@store_option
@json_option
def command(
    runs: tuple[str, ...],
    by: str | None,
    control_style: bool,
    metric: str | None,
    matrix: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Rank the arms of RUNS on their common cases, with the range of ranks that the pairwise comparisons leave open.

    Ratings are Bradley–Terry (and Elo) from judges' verdicts on pairs (`fairtrial pairwise`), from people's votes
    (`fairtrial vote`), from both, or from scores: the arm with the higher score on a case wins it.
    """
    from fairtrial.analyse.rank import rank
    from fairtrial.analyse.score_table import find_sources, read_scores
    from fairtrial.reports.json import ranking_document

    scores = read_scores(find_sources(runs, open_store(store)))
    ranking = rank(scores, metric=None if metric is None else metric_key(metric), by=by, control_style=control_style)  # type: ignore[arg-type]
    if as_json:
        print_json(ranking_document(ranking))
    else:
        print_ranking(ranking, matrix=matrix)


def print_ranking(ranking: Ranking, *, matrix: bool = False) -> None:
    """Print the ranking."""
    from rich.text import Text

    from fairtrial.analyse.wording.ranks import COLUMNS, ranked_cells, ranking_headline, style_line
    from fairtrial.cli.console import Console
    from fairtrial.cli.tables import table

    console = Console(highlight=False)
    console.print(Text(ranking_headline(ranking), style="bold"), soft_wrap=True)
    console.print()
    console.print(table(COLUMNS, (ranked_cells(place, ranking.metric) for place in ranking.places)))
    if matrix and ranking.matrix is not None:
        console.print()
        console.print(_matrix_table(ranking.matrix))
    for style in ranking.style:
        console.print(style_line(style))
    for note in ranking.notes:
        console.print(Text(note, style="yellow"))


def _matrix_table(matrix: WinMatrix) -> Table:
    from fairtrial.cli.tables import table

    rows = []
    for number, label in enumerate(matrix.labels):
        wins = matrix.wins[number]
        losses = [row[number] for row in matrix.wins]
        games = [won + lost for won, lost in zip(wins, losses, strict=True)]
        shares = ["–" if not total else f"{100 * won / total:.0f} %" for won, total in zip(wins, games, strict=True)]
        rows.append([f"{number + 1} {label}", *shares])
    return table(("wins against", *(str(number + 1) for number in range(len(rows)))), rows, names=("wins against",))
