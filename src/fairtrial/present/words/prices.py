"""The price of a verdict in words, shared by all surfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.core.formatting import money, number
from fairtrial.text.printable import counted, sentence_of

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Price, Way
    from fairtrial.analyse.leaderboard import Leaderboard

_MORE = {
    "cases": ("more case", ""),
    "repeats": ("more answer", " to each case"),
    "judgements": ("more verdict", " on each answer"),
}


def price_words(board: Leaderboard) -> str:
    """Say what the verdict on the pair to decide next cost, and what a point more would; empty if that is not known."""
    if board.priced is None:
        return ""
    one, other, price = board.priced
    line = price_line(price)
    return f"{one} against {other}: {line}." if len(board.places) > 2 else sentence_of(line)


def price_line(price: Price) -> str:
    """Say what a verdict cost, and what it would take to know the difference a point better."""
    calls = counted(price.calls, "call")
    cost = f"the verdict cost {money(price.usd)} ({calls})" if price.usd else f"the verdict took {calls}"
    if not price.ways:
        return cost
    *ways, last = map(_way_words, price.ways)
    either = f"{', '.join(ways)}{',' if len(ways) > 1 else ''} or {last}" if ways else last
    known = f"the difference to within {number(price.target)} points instead of {number(price.half_width)}"
    return f"{cost}; to know {known} takes {either}"


def _way_words(way: Way) -> str:
    if way.what == "labels":
        return f"labels for {counted(way.more, 'more case')}"
    took = counted(way.calls, "call") if way.usd is None else f"about {money(way.usd)}"
    if way.what == "second_judge":
        return f"the second judge on {counted(way.more, 'more case')} ({took})"
    noun, where = _MORE[way.what]
    return f"{counted(way.more, noun)}{where} ({took})"
