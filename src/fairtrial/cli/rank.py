"""`fairtrial rank`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, open_store, option, print_json, score_named, store_option

if TYPE_CHECKING:
    from rich.table import Table

    from fairtrial.analyse.rank import Ranking, WinMatrix


@click.command()
@click.argument("runs", nargs=-1)
@option(
    "--by",
    type=click.Choice(["scores", "verdicts", "votes", "both"]),
    help="What ratings come from; else verdicts, votes or scores, the first that there are.",
)
@option("--control-style", is_flag=True, help="Ratings as if answers were equal in length and markup.")
@option("--metric", metavar="M", help="Rank by this metric; else by the suite's primary one, or the score.")
@option("--matrix", is_flag=True, help="Who beat whom, and how often.")
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
    """Rank the arms of RUNS on their common cases, with the ranks that are left open by who is better than whom.

    Ratings are Bradley–Terry (and Elo) from judges' verdicts on pairs (`fairtrial pairwise`), from people's votes
    (`fairtrial vote`), from both, or from scores: who has the higher one on a case wins it.
    """
    from fairtrial.analyse.rank import rank
    from fairtrial.analyse.score_table import find_sources, read_scores
    from fairtrial.reports.json import ranking_document

    scores = read_scores(find_sources(runs, open_store(store)))
    found = rank(scores, metric=None if metric is None else score_named(metric), by=by, control_style=control_style)  # type: ignore[arg-type]
    if as_json:
        print_json(ranking_document(found))
    else:
        print_ranking(found, matrix=matrix)


def print_ranking(found: Ranking, *, matrix: bool = False) -> None:
    """The ranking, for people."""
    from rich.text import Text

    from fairtrial.analyse.wording.ranks import COLUMNS, ranked_cells, ranking_headline, style_line
    from fairtrial.cli.console import Console
    from fairtrial.cli.tables import table

    console = Console(highlight=False)
    console.print(Text(ranking_headline(found), style="bold"), soft_wrap=True)
    console.print()
    console.print(table(COLUMNS, (ranked_cells(place, found.metric) for place in found.places)))
    if matrix and found.matrix is not None:
        console.print()
        console.print(_matrix_table(found.matrix))
    for style in found.style:
        console.print(style_line(style))
    for note in found.notes:
        console.print(Text(note, style="yellow"))


def _matrix_table(matrix: WinMatrix) -> Table:
    from fairtrial.cli.tables import table

    rows = []
    for number, label in enumerate(matrix.labels):
        own = matrix.wins[number]
        against = [row[number] for row in matrix.wins]
        games = [won + lost for won, lost in zip(own, against, strict=True)]
        shares = ["–" if not all_ else f"{100 * won / all_:.0f} %" for won, all_ in zip(own, games, strict=True)]
        rows.append([f"{number + 1} {label}", *shares])
    return table(("wins against", *(str(number + 1) for number in range(len(rows)))), rows, names=("wins against",))
