"""The picture of a run: every arm with its interval, its distance to the first, and brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

from fairtrial.analyse.leaderboard import Contender, Leaderboard
from fairtrial.analyse.summary import ArmSummary
from fairtrial.cli.axis import MIN_WIDTH, drawn, scaled
from fairtrial.cli.layout import FIRST, QUIET, VERDICT_STYLES, Column, cells, rule, table_lines
from fairtrial.cli.tables import shortened
from fairtrial.core.formatting import Scale, interval_words, milliseconds, signs
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.present.words.leaderboards import distance_words, rank_words
from fairtrial.present.words.verdicts import GLYPHS
from fairtrial.text.printable import printable

_NARROW = 60  # below this, there is no bar
_WIDE = 108  # from here on, there is room for the differences, cost and latency
_MOST_BAR, _MOST_DIFFERENCE = 48, 30
_LONG_NAME = 24


class _Shape(NamedTuple):
    """What a picture has room for."""

    bars: bool
    interval: bool
    words: bool  # next to the distance to the first

    def fits(self, width: int, fixed: int, name: int) -> bool:
        """Return whether the picture fits, with names of this length."""
        return fixed + name + 2 + (MIN_WIDTH + 2 if self.bars else 0) < width


_FLAGS = (
    (True,) * 3,
    (True, True, False),
    (False, True, True),
    (False, True, False),
    (False, False, True),
    (False,) * 3,
)
_SHAPES = tuple(_Shape(*flags) for flags in _FLAGS)


def forest_lines(
    board: Leaderboard, arms: Mapping[str, ArmSummary], width: int, *, plain: bool = False, whole: bool = True
) -> list[Text]:
    """Return the arms as lines, the best first; arms without a score come last. Of very many, `whole` shows all.

    A dotted rule is drawn where every arm above is better than every arm below.
    """
    names = [place.label for place in board.places] + board.unscored
    if not board.places or (plain and len(names) == 1):
        return []
    ranked = len(board.places) > 1
    before = [_ranks(board.places, len(board.unscored))] if ranked else []
    more = _costs(board.places, board.unscored, arms) if width >= _WIDE else []
    shape, after, fixed = _shape(board, [*before, *more], width, names, plain=plain)
    with_brackets = [*more, *_brackets(board)]
    if _shape(board, [*before, *with_brackets], width, names, plain=plain)[0] == shape:  # not at the cost of the rest
        more = with_brackets
        shape, after, fixed = _shape(board, [*before, *more], width, names, plain=plain)
    arm, alone = _names(names, board, width - 3 - fixed - (2 + MIN_WIDTH if shape.bars else 0))
    columns = [*before, *arm]
    if shape.bars:
        left = width - 1 - fixed - sum(column.width + column.gap for column in arm)
        columns += _bars(board, left, after, ranked=ranked, wide=width >= _WIDE)
    else:
        columns += after
    columns += more
    lines = table_lines(columns)
    hidden = 0 if whole else max(0, len(names) - MOST_ARMS)
    indent = before[0].width + 2 if before else 0
    shown = _with_rules(lines[: len(lines) - hidden], board, alone, width, indent=indent)
    return [*shown, more_arms(hidden)] if hidden else shown


def more_arms(count: int) -> Text:
    """Say how many arms are left out of a table."""
    return Text(f" and {count:,} more arms: --details shows them", QUIET)


def _shape(
    board: Leaderboard, others: Sequence[Column], width: int, names: Sequence[str], *, plain: bool
) -> tuple[_Shape, list[Column], int]:
    """Return the fullest shape that fits, its columns of numbers, and the width of all columns but names and bars."""
    lengths = [Text(name).cell_len for name in names]
    name = max([length for length in lengths if length <= _LONG_NAME], default=0)  # longer ones get a line of their own
    for shape in _SHAPES:
        if shape.bars and (plain or width < _NARROW):
            continue
        after = [] if len(names) == 1 else _numbers(board, shape)  # of a single arm, the headline has the numbers
        fixed = 1 + sum(column.width + column.gap for column in [*others, *after])
        if shape.fits(width, fixed, name):
            break
    return shape, after, fixed


def _bars(board: Leaderboard, left: int, after: list[Column], *, ranked: bool, wide: bool) -> list[Column]:
    """Return the drawn intervals with the numbers next to them, and with room the drawn differences to the first."""
    both = ranked and wide and left >= 2 * (MIN_WIDTH + 4)
    second = min(_MOST_DIFFERENCE, (left - 4) // 2) if both else 0
    first = min(_MOST_BAR, left - 2 - (second + 2 if second else 0))
    columns = [_intervals(board, first), *after]
    if second:
        columns.insert(-1, _differences(board, second))
    return columns


def _with_rules(lines: list[Text], board: Leaderboard, alone: Mapping[int, str], width: int, indent: int) -> list[Text]:
    """Put dotted rules where arms are clearly apart, and names that are too long for their column above their lines."""
    ends = {*board.breaks, len(board.places)}
    shown = [lines[0]]
    for number, line in enumerate(lines[1:]):
        if number in ends:
            shown.append(rule(min(width, max(each.cell_len for each in lines) + 1)))
        if number in alone:
            name = shortened(printable(alone[number]), width - indent - 2)
            shown.append(Text.assemble(line[: indent + 1], (name, _style(board, alone[number]))))
            shown.append(Text.assemble(" " * (indent + 1), line[indent + 1 :]))
        else:
            shown.append(line)
    return shown


def _style(board: Leaderboard, label: str) -> str:
    return FIRST if label in board.front else ""


def _brackets(board: Leaderboard) -> list[Column]:
    """Return the brackets: a line where an arm belongs to one, dots where one passes it."""
    found = board.shown_brackets
    order = [one.label for one in board.places]
    rows = []
    for place, label in enumerate(order):
        marks = []
        for bracket in found:
            inside = order.index(bracket[0]) <= place <= order.index(bracket[-1])
            marks.append("┃" if label in bracket else "┊" if inside else " ")
        rows.append("".join(marks))
    return [Column("", cells([*rows, *[""] * len(board.unscored)], QUIET), gap=1)] if found else []


def _ranks(places: Sequence[Contender], unscored: int) -> Column:
    return Column("rank", cells([*map(rank_words, places), *["–"] * unscored]))


def _names(names: Sequence[str], board: Leaderboard, room: int) -> tuple[list[Column], dict[int, str]]:
    """Return the column of names, and by their place the names that are too long for it."""
    shown = [Text(printable(name), _style(board, name)) for name in names]
    alone = {number: names[number] for number, text in enumerate(shown) if text.cell_len > room}
    column = Column("arm", [Text("") if number in alone else text for number, text in enumerate(shown)])
    return ([column] if len(alone) < len(names) else []), alone


def _numbers(board: Leaderboard, shape: _Shape) -> list[Column]:
    """Return the columns with the score, its interval, and the distance to the first."""
    scale, missing = Scale(board.metric), [""] * len(board.unscored)
    places = board.places
    means = [signs(scale.plain(place.aggregate.mean)) for place in places] + ["no score"] * len(missing)
    columns = [Column(shortened(board.metric or "score", 14), cells(means), right=True)]
    if shape.interval:
        columns.append(Column("95 % CI", cells([*(_interval(place, board.metric) for place in places), *missing])))
    if len(places) > 1:
        distances = [_distance(place, board.metric, words=shape.words) for place in places]
        columns.append(Column("to the first" if shape.words else "", [*distances, *cells(missing)], gap=1))
    return columns


def _interval(place: Contender, metric: str) -> str:
    numbers = place.aggregate
    if numbers.ci95 is None:
        return "n = 1" if numbers.count == 1 else "–"
    return interval_words(numbers.ci95, metric)


def _distance(place: Contender, metric: str, *, words: bool) -> Text:
    if place.to_first is None:
        return Text("")
    verdict, style = place.to_first.verdict, VERDICT_STYLES[place.to_first.verdict]
    said = distance_words(place.to_first, metric).removesuffix(", equivalent")  # its glyph says so
    said = said if words or place.to_first.difference is None else said.split(" ")[0]
    return Text(f"{GLYPHS[verdict]} {said}", style)


def _intervals(board: Leaderboard, width: int) -> Column:
    factor, missing = Scale(board.metric).factor, len(board.unscored)
    rows = [scaled(place.aggregate.mean, place.aggregate.ci95, factor) for place in board.places]
    styles = [_style(board, place.label) for place in board.places]
    within = None if board.metric else (0.0, 100.0)
    return drawn([*rows, *[(None, None)] * missing], width, [*styles, *[""] * missing], within=within)


def _differences(board: Leaderboard, width: int) -> Column:
    """Draw the difference of every arm to the first."""
    factor = Scale(board.metric).factor
    distances = [place.to_first for place in board.places]
    rows = [(None, None) if d is None else scaled(d.difference, d.ci95, factor) for d in distances]
    column = drawn(rows, width, [""] * len(rows), zero=True)
    return column._replace(cells=[*column.cells, *(Text("") for _ in board.unscored)])


def _costs(places: Sequence[Contender], unscored: Sequence[str], arms: Mapping[str, ArmSummary]) -> list[Column]:
    """Return the columns with the cost of a thousand answers, unless nothing costs anything, and the latency."""
    shown = [arms.get(label) for label in [*(place.label for place in places), *unscored]]
    if not all(shown):
        return []
    known = [arm for arm in shown if arm is not None]
    latency = Column("p50", cells([milliseconds(arm.latency_ms.p50) for arm in known], QUIET), right=True)
    if all(arm.cost_usd == 0 for arm in known):
        return [latency]
    return [Column("$/1k", cells(map(_per_thousand, known), QUIET), right=True), latency]


def _per_thousand(arm: ArmSummary) -> str:
    asked = arm.trials - arm.waiting
    if not asked or (arm.cost.unknown and not arm.cost.known):
        return "unknown" if asked else "–"
    each = 1000 * arm.cost.known / asked
    if 0 < each < 0.005 and not arm.cost.unknown:
        return "< 0.01"
    return f"{'≥ ' if arm.cost.unknown else ''}{each:.2f}" if each < 1000 else f"{each:.0f}"
