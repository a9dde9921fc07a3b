"""`fairtrial rank`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.table import Table

from fairtrial.analyse.leaderboard import table_leaderboard
from fairtrial.analyse.rank import Ranking, WinMatrix, rank
from fairtrial.analyse.score_table import check_metric, find_sources, read_scores
from fairtrial.cli.axis import MIN_WIDTH, drawn, scaled
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.layout import (
    FIRST,
    QUIET,
    Column,
    cells,
    print_commands,
    print_lines,
    print_wrapped,
    table_lines,
    total_width,
)
from fairtrial.cli.options import metric_key, runs_in_command
from fairtrial.cli.start import open_store
from fairtrial.cli.tables import short_names, table
from fairtrial.core.formatting import Scale
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.present.words.leaderboards import headline
from fairtrial.present.words.ranks import COLUMNS, ranked_cells, ranking_headline, ranking_verdict, style_line
from fairtrial.reports.json import ranking_document
from fairtrial.text.printable import counted

_SHORT_NAME = 12


def rank_runs(
    runs: tuple[str, ...],
    by: str | None,
    control_style: bool,
    metric: str | None,
    matrix: bool,
    plain: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Print the ranking of the arms of runs."""
    scores = read_scores(find_sources(runs, open_store(store)))
    key = None if metric is None else metric_key(metric)
    check_metric(scores.arms, scores.primary if key is None else key)
    board = table_leaderboard(scores, key) if by in (None, "scores") else None
    ranking = rank(scores, metric=key, by=by, control_style=control_style, board=board)  # type: ignore[arg-type]
    if as_json:
        print_json(ranking_document(ranking))
        return
    verdict = ranking_verdict(ranking) if board is None else headline(board)
    print_ranking(ranking, verdict, matrix=matrix, plain=plain)
    sys.stdout.flush()
    _print_next(runs, matrix=matrix or ranking.matrix is None)


def _print_next(runs: Sequence[str], *, matrix: bool) -> None:
    named = runs_in_command(runs)
    commands = [(f"fairtrial compare{named}", "by how much, pair by pair")]
    commands += [] if matrix else [(f"fairtrial rank{named} --matrix", "who won how often")]
    print_commands(Console(stderr=True), commands)


def print_ranking(ranking: Ranking, verdict: str, *, matrix: bool = False, plain: bool = False) -> None:
    """Print the ranking: the verdict, every arm with its interval, what the ratings are worth, notes."""
    console = Console()
    print_wrapped(console, verdict, "bold")
    console.print()
    print_lines(console, table_lines(_columns(ranking, console.page_width, plain=plain)))
    if (more := len(ranking.places) - MOST_ARMS) > 0:
        print_wrapped(console, f"and {counted(more, 'more arm')}: --json has them all", QUIET)
    if matrix and ranking.matrix is not None:
        console.print()
        console.print(_matrix_table(ranking.matrix))
    console.print()
    said = ranking_headline(ranking)
    print_wrapped(console, f"{said if ranking.metric else said[:1].upper() + said[1:]}.", QUIET, hang=2)
    for style in ranking.style:
        print_wrapped(console, style_line(style), hang=2)
    for note in ranking.notes:
        print_wrapped(console, note, QUIET, hang=2)


def _columns(ranking: Ranking, width: int, *, plain: bool) -> list[Column]:
    """Return the table of a ranking, with a bar if there is room: of the ratings if they make the ranks."""
    places = ranking.places[:MOST_ARMS]
    rows = [ranked_cells(place, ranking.metric) for place in places]
    first = {place.label for place in ranking.places if place.rank == 1}
    leading = [FIRST if place.label in first and len(first) < len(ranking.places) else "" for place in places]
    columns = [
        Column(head.removeprefix("rating "), cells(texts), right=head in ("score", "rating", "Elo"))
        for head, texts in zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True)
    ]
    if all(place.elo is None for place in places):
        columns = columns[: -len(("rating", "95 % CI", "Elo"))]
    elif not plain and total_width(columns) + MIN_WIDTH + 2 >= width:
        columns.pop()  # the picture says more than Elo, which --json has too
    least = min(columns[1].width, _SHORT_NAME)
    while len(columns) > 3 and total_width(columns) - columns[1].width + least >= width:
        columns.pop()
    others = total_width(columns) - columns[1].width
    room = width - 1 - others
    drawn = not plain and room - MIN_WIDTH - 2 >= min(columns[1].width, 24)
    names = short_names([place.label for place in places], max(12, room - (MIN_WIDTH + 2 if drawn else 0)))
    columns[1] = Column("arm", [cells([name], style)[0] for name, style in zip(names, leading, strict=True)])
    if drawn:
        columns.insert(2, _bars(ranking, leading, min(40, room - columns[1].width - 2)))
    return columns


def _bars(ranking: Ranking, styles: Sequence[str], width: int) -> Column:
    places = ranking.places[: len(styles)]
    rated = ranking.by_pairs and all(place.rating is not None for place in places)
    factor = Scale(ranking.metric).factor
    means = [scaled(place.aggregate.mean, place.aggregate.ci95, factor) for place in places]
    rows = [(place.rating, place.rating_ci95) for place in places] if rated else means
    return drawn(rows, width, styles, within=None if rated or ranking.metric else (0.0, 100.0))


def _matrix_table(matrix: WinMatrix) -> Table:
    rows = []
    for number, label in enumerate(matrix.labels):
        wins = matrix.wins[number]
        losses = [row[number] for row in matrix.wins]
        games = [won + lost for won, lost in zip(wins, losses, strict=True)]
        shares = ["–" if not total else f"{100 * won / total:.0f} %" for won, total in zip(wins, games, strict=True)]
        rows.append([f"{number + 1} {label}", *shares])
    return table(("wins against", *(str(number + 1) for number in range(len(rows)))), rows, names=("wins against",))
