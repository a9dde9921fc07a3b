"""`fairtrial rank`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, open_store, option, print_json, store_option

if TYPE_CHECKING:
    from rich.table import Table

    from fairtrial.analyse.rank import Place, Ranking, WinMatrix

_COLUMNS = ("rank", "arm", "score", "95% CI", "rating", "rating 95% CI", "Elo")


@click.command()
@click.argument("runs", nargs=-1)
@option("--by", type=click.Choice(["scores", "verdicts"]), help="What ratings come from; else verdicts if any.")
@option("--metric", default="", metavar="M", help="Rank by this metric instead of the score.")
@option("--matrix", is_flag=True, help="Who beat whom, and how often.")
@store_option
@json_option
def command(runs: tuple[str, ...], by: str | None, metric: str, matrix: bool, store: str | None, as_json: bool) -> None:
    """Rank the arms of RUNS on their common cases, with the ranks that their intervals leave open.

    Ratings are Bradley–Terry (and Elo) from judges' verdicts on pairs (`fairtrial pairwise`), or from scores: who has
    the higher one on a case wins it.
    """
    from fairtrial.analyse.contestants import enter, find_sources
    from fairtrial.analyse.rank import rank
    from fairtrial.reports.json import ranking_document

    found = rank(enter(find_sources(runs, open_store(store))), metric=metric, by=by)  # type: ignore[arg-type]
    if as_json:
        print_json(ranking_document(found))
    else:
        print_ranking(found, matrix=matrix)


def print_ranking(found: Ranking, *, matrix: bool = False) -> None:
    """The ranking, for people."""
    from rich.console import Console
    from rich.text import Text

    from fairtrial.cli.tables import table

    console = Console(highlight=False)
    by = "judges' verdicts on pairs" if found.by == "verdicts" else "scores, case by case"
    heading = f"{found.metric or 'score'} on {found.cases} common cases; ranks by its intervals, ratings from {by}"
    console.print(Text(heading, style="bold"), soft_wrap=True)
    console.print()
    console.print(table(_COLUMNS, (_cells(place, found.metric) for place in found.places)))
    if matrix and found.matrix is not None:
        console.print()
        console.print(_matrix_table(found.matrix))
    for note in found.notes:
        console.print(Text(note, style="yellow"))


def _cells(place: Place, metric: str) -> list[str]:
    from fairtrial.analyse.compare_words import Scale
    from fairtrial.analyse.rank import rank_words

    scale, numbers, bounds = Scale(metric), place.aggregate, place.rating_ci95
    interval = "n = 1" if numbers.ci95 is None else f"[{scale.plain(numbers.ci95[0])}, {scale.plain(numbers.ci95[1])}]"
    return [
        rank_words(place),
        place.label,
        scale.plain(numbers.mean),
        interval,
        "–" if place.rating is None else f"{place.rating:.0f}",
        "–" if bounds is None else f"[{_rating(bounds[0])}, {_rating(bounds[1])}]",
        "–" if place.elo is None else f"{place.elo:.0f}",
    ]


def _rating(value: float) -> str:
    """Far out, resampling found somebody who only wins or only loses: there is no bound."""
    return f"{value:.0f}" if abs(value - 1000) < 1000 else "∞" if value > 0 else "-∞"


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
