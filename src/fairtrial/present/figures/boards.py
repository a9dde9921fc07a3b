"""The board of votes as pictures: a forest of ratings, and a small one next to a ballot."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from fairtrial.analyse.pair_board import BoardArm, PairBoard
from fairtrial.present.charts import Axis, Forest, ForestRow, forest, linear_axis
from fairtrial.present.charts.marks import Interval, drawing, ends_of, grid_lines, mark, spoken
from fairtrial.present.charts.svg import safe, tag, words
from fairtrial.present.words.pair_boards import (
    board_ranks,
    chosen_words,
    rating_bounds,
    rating_words,
    won_words,
)

_ROW = 36
_REACH = 600.0  # rating points from the middle beyond which an interval is cut off in a picture


def board_forest(board: PairBoard, href: Callable[[str], str], most: int | None = None) -> Markup:
    """Return the arms, or the best ones, with their ratings and intervals."""
    several = len(board.arms) > 1 and board.rated
    shown = board.arms[:most]
    rows = [_row(arm, href, several=several, lead=arm.label in board.front) for arm in shown]
    if len(shown) == len(board.arms):
        more = ("0", "–", "–") if several else ("0", "–")
        idle = board.idle if most is None else board.idle[: most - len(shown)]
        rows += [
            ForestRow(name, None, shown="–", bounds="not compared yet", href=href(name), more=more) for name in idle
        ]
    names = ("Votes" if board.by == "votes" else "Compared", "Won, lost")
    first = (f"Chosen over {board.arms[0].label}",) if several else ()
    chart = Forest(
        rows,
        value_name="Rating",
        more_names=(*names, *first),
        within=None,
        brackets=board.brackets if len(shown) == len(board.arms) else (),
    )
    return safe(forest(chart))


def _row(arm: BoardArm, href: Callable[[str], str], *, several: bool, lead: bool) -> ForestRow:
    more = (f"{arm.battles:,}", won_words(arm))
    return ForestRow(
        arm.label,
        arm.rating,
        _drawn(arm.ci95),
        rating_words(arm),
        rating_bounds(arm),
        rank=board_ranks(arm),
        href=href(arm.label),
        more=(*more, chosen_words(arm)) if several else more,
        lead=lead,
    )


def _drawn(ci95: Interval | None) -> Interval | None:
    """Return an interval as far as a picture shows it."""
    if ci95 is None:
        return None
    return max(1000 - _REACH, min(1000 + _REACH, ci95[0])), max(1000 - _REACH, min(1000 + _REACH, ci95[1]))


def small_board(board: PairBoard, most: int) -> Markup:
    """Return the best arms as a small table: name and votes, interval, rating."""
    shown = board.arms[:most]
    axis = linear_axis(ends_of((arm.rating, _drawn(arm.ci95)) for arm in shown), include=(1000.0,), least=100, most=4)
    rows = [_small_row(arm, axis, lead=arm.label in board.front) for arm in shown]
    return safe(tag("table", tag("tbody", *rows), class_="tbl ratings", aria_label="Board"))


def _small_row(arm: BoardArm, axis: Axis, *, lead: bool) -> str:
    name = tag("th", words(arm.label), tag("small", words(won_words(arm))), scope="row")
    if arm.rating is None:
        return tag("tr", name, tag("td", class_="bp"), tag("td", "–", class_="num"))
    drawn = drawing(
        _ROW,
        grid_lines(axis, _ROW, zero=1000.0),
        mark(axis, arm.rating, _drawn(arm.ci95), y=_ROW // 2, r=5, tone="lead" if lead else ""),
        says=spoken(rating_words(arm), rating_bounds(arm)),
    )
    return tag("tr", name, tag("td", drawn, class_="bp"), tag("td", tag("b", rating_words(arm)), class_="num"))
