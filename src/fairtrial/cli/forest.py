"""The picture of a run: every arm with its interval, in tiers, and its distance to the first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

from fairtrial.analyse.summary import ArmSummary
from fairtrial.analyse.tiers import Contender, Tiers
from fairtrial.analyse.wording.comparisons import Scale
from fairtrial.analyse.wording.numbers import milliseconds
from fairtrial.analyse.wording.tiers import GLYPHS, distance_words, interval_words, rank_words, signs
from fairtrial.cli.axis import MIN_WIDTH, Axis
from fairtrial.cli.layout import FIRST, QUIET, VERDICT_STYLES, Column, cells, rule, table_lines
from fairtrial.cli.tables import shortened
from fairtrial.core.text import printable

_NARROW = 60  # below this, there is no bar
_WIDE = 108  # from here on, there is room for the differences, cost and latency
_MOST_BAR, _MOST_DIFFERENCE = 48, 30
_LONG_NAME = 24


class _Shape(NamedTuple):
    """What a picture has room for."""

    bars: bool
    interval: bool
    words: bool  # beside the distance to the first

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


def forest_lines(tiers: Tiers, arms: Mapping[str, ArmSummary], width: int, *, plain: bool = False) -> list[Text]:
    """Return the arms as lines, the best first, with dotted rules between tiers; arms without a score come last."""
    names = [place.label for place in tiers.places] + tiers.unscored
    if not tiers.places or (plain and len(names) == 1):
        return []
    ranked = len(tiers.places) > 1
    before = [_ranks(tiers.places, len(tiers.unscored))] if ranked else []
    more = _costs(tiers.places, tiers.unscored, arms) if width >= _WIDE else []
    shape, after, fixed = _shape(tiers, [*before, *more], width, names, plain=plain)
    arm, alone = _names(names, tiers, width - 3 - fixed - (2 + MIN_WIDTH if shape.bars else 0))
    columns = [*before, *arm]
    if shape.bars:
        left = width - 1 - fixed - sum(column.width + column.gap for column in arm)
        columns += _bars(tiers, left, after, ranked=ranked, wide=width >= _WIDE)
    else:
        columns += after
    columns += more
    return _with_rules(table_lines(columns), tiers, alone, width, indent=before[0].width + 2 if before else 0)


def _shape(
    tiers: Tiers, others: Sequence[Column], width: int, names: Sequence[str], *, plain: bool
) -> tuple[_Shape, list[Column], int]:
    """Return the fullest shape that fits, its columns of numbers, and the width of all columns but names and bars."""
    lengths = [Text(name).cell_len for name in names]
    name = max([length for length in lengths if length <= _LONG_NAME], default=0)  # longer ones get a line of their own
    for shape in _SHAPES:
        if shape.bars and (plain or width < _NARROW):
            continue
        after = [] if len(names) == 1 else _numbers(tiers, shape)  # of a single arm, the headline has the numbers
        fixed = 1 + sum(column.width + column.gap for column in [*others, *after])
        if shape.fits(width, fixed, name):
            break
    return shape, after, fixed


def _bars(tiers: Tiers, left: int, after: list[Column], *, ranked: bool, wide: bool) -> list[Column]:
    """Return the drawn intervals with the numbers beside them, and with room the drawn differences to the first."""
    both = ranked and wide and left >= 2 * (MIN_WIDTH + 4)
    second = min(_MOST_DIFFERENCE, (left - 4) // 2) if both else 0
    first = min(_MOST_BAR, left - 2 - (second + 2 if second else 0))
    columns = [_intervals(tiers, first), *after]
    if second:
        columns.insert(-1, _differences(tiers, second))
    return columns


def _with_rules(lines: list[Text], tiers: Tiers, alone: Mapping[int, str], width: int, indent: int) -> list[Text]:
    """Put dotted rules between tiers, and names that are too long for their column above their lines."""
    ends = {sum(map(len, tiers.tiers[: number + 1])) for number in range(len(tiers.tiers))}
    shown, leading = [lines[0]], len(tiers.tiers[0]) if tiers.tiers else 0
    for number, line in enumerate(lines[1:]):
        if number in ends:
            shown.append(rule(min(width, max(each.cell_len for each in lines) + 1)))
        if number in alone:
            name = shortened(printable(alone[number]), width - indent - 2)
            shown.append(Text.assemble(line[: indent + 1], (name, FIRST if number < leading else "")))
            shown.append(Text.assemble(" " * (indent + 1), line[indent + 1 :]))
        else:
            shown.append(line)
    return shown


def _ranks(places: Sequence[Contender], unscored: int) -> Column:
    return Column("rank", cells([*map(rank_words, places), *["–"] * unscored]))


def _names(names: Sequence[str], tiers: Tiers, room: int) -> tuple[list[Column], dict[int, str]]:
    """Return the column of names, and by their place the names that are too long for it."""
    leading = len(tiers.tiers[0]) if len(tiers.tiers) > 1 else 0
    shown = [Text(printable(name), FIRST if number < leading else "") for number, name in enumerate(names)]
    alone = {number: names[number] for number, text in enumerate(shown) if text.cell_len > room}
    column = Column("arm", [Text("") if number in alone else text for number, text in enumerate(shown)])
    return ([column] if len(alone) < len(names) else []), alone


def _numbers(tiers: Tiers, shape: _Shape) -> list[Column]:
    """Return the columns with the score, its interval, and the distance to the first."""
    scale, missing = Scale(tiers.metric), [""] * len(tiers.unscored)
    places = tiers.places
    means = [signs(scale.plain(place.aggregate.mean)) for place in places] + ["no score"] * len(missing)
    columns = [Column(shortened(tiers.metric or "score", 14), cells(means), right=True)]
    if shape.interval:
        columns.append(Column("95 % CI", cells([*(_interval(place, tiers.metric) for place in places), *missing])))
    if len(places) > 1:
        distances = [_distance(place, tiers.metric, words=shape.words) for place in places]
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
    said = said if words else said.split(" ")[0]
    return Text(f"{GLYPHS[verdict]} {said or 'no cases in common'}", style)


def _intervals(tiers: Tiers, width: int) -> Column:
    """Draw the interval of every arm."""
    factor = Scale(tiers.metric).factor
    leading = len(tiers.tiers[0]) if len(tiers.tiers) > 1 else 0
    rows = [(_times(p.aggregate.mean, factor), _both(p.aggregate.ci95, factor)) for p in tiers.places]
    ends = [end for mean, bounds in rows for end in (mean, *(bounds or ())) if end is not None]
    axis = Axis(ends, width, within=(-math.inf, math.inf) if tiers.metric else (0.0, 100.0))
    bars = [axis.bar(mean, bounds, FIRST if place < leading else "") for place, (mean, bounds) in enumerate(rows)]
    return Column(axis.head(), [*bars, *(axis.bar(None, None) for _ in tiers.unscored)])


def _differences(tiers: Tiers, width: int) -> Column:
    """Draw the difference of every arm to the first."""
    factor = Scale(tiers.metric).factor
    distances = [place.to_first for place in tiers.places]
    rows = [(None, None) if d is None else (_times(d.difference, factor), _both(d.ci95, factor)) for d in distances]
    ends = [end for mean, bounds in rows for end in (mean, *(bounds or ())) if end is not None]
    axis = Axis(ends, width, zero=True)
    bars = [axis.bar(mean, bounds) for mean, bounds in rows]
    return Column(axis.head(), [*bars, *(Text("") for _ in tiers.unscored)])


def _times(value: float | None, factor: int) -> float | None:
    return None if value is None else factor * value


def _both(bounds: tuple[float, float] | None, factor: int) -> tuple[float, float] | None:
    return None if bounds is None else (factor * bounds[0], factor * bounds[1])


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
