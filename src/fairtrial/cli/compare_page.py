"""Comparisons in the terminal: the verdict, a matrix of all pairs or one pair in detail, notes, what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.text import Text

from fairtrial.analyse.comparison import Comparison, Comparisons, Verdict
from fairtrial.analyse.flips import Flip
from fairtrial.analyse.tiers import Distance, Tiers, comparison_tiers
from fairtrial.analyse.wording.comparisons import (
    Scale,
    brief_lines,
    detail_lines,
    method_words,
    metric_lines,
    pair_cells,
    pair_columns,
    sentence,
    subject_line,
    why_undecided,
)
from fairtrial.analyse.wording.tiers import (
    GLYPHS,
    headline,
    interval_words,
    pair_sentence,
    rank_words,
    settle_words,
    signs,
    tier_words,
)
from fairtrial.cli.axis import MIN_WIDTH, Axis, split
from fairtrial.cli.console import Console
from fairtrial.cli.layout import (
    FIRST,
    HEAD,
    LOUD,
    QUIET,
    VERDICT_STYLES,
    Column,
    cells,
    print_lines,
    print_wrapped,
    table_lines,
    total_width,
)
from fairtrial.cli.tables import short_names, shortened, table
from fairtrial.core.text import counted, one_line, printable

_GLYPHS_ONLY, _LIST_ONLY = 9, 30  # from so many arms on, a matrix has glyphs only; there are only tiers
_MAX_KINDS = 8
_MAX_REMARKS = 6
_MAX_SENTENCES = 3
_MAX_DISAGREEING = 3
_MAX_METRICS = 8
_NARROW = 60
_MOST_BAR = 44
_ANSWER_WIDTH = 40
_WIDE = 118  # from here on, there is room for both answers
_OPPOSITE: dict[Verdict, Verdict] = {"better": "worse", "worse": "better"}


class _Row(NamedTuple):
    """A difference to show: its name, its number of cases, and the numbers."""

    name: str
    cases: int | None
    verdict: Verdict
    difference: float | None
    ci95: tuple[float, float] | None
    metric: str

    def turned(self) -> _Row:
        """Return the difference the other way round."""
        return self._replace(
            verdict=_OPPOSITE.get(self.verdict, self.verdict),
            difference=None if self.difference is None else -self.difference,
            ci95=None if self.ci95 is None else (-self.ci95[1], -self.ci95[0]),
        )


def print_comparisons(
    comparisons: Comparisons, *, flips: Sequence[Flip] = (), details: bool = False, plain: bool = False
) -> None:
    """Print the comparisons with their verdicts; every number and test of every pair with `details`."""
    console = Console()
    tiers = comparison_tiers(comparisons)
    print_wrapped(console, _verdict(comparisons) if tiers is None else headline(tiers), "bold")
    if len(comparisons.pairs) == 1:
        _print_pair(console, comparisons, tiers, flips, plain=plain)
    else:
        _print_pairs(console, comparisons, tiers, plain=plain)
    if details:
        _print_details(console, comparisons)
    if comparisons.notes:
        console.print()
    for note in comparisons.notes:
        print_wrapped(console, note, QUIET, hang=2)


def _verdict(comparisons: Comparisons) -> str:
    """Return the headline of pairs that are not all pairs of some arms, such as the same arms in two runs."""
    decided = [pair for pair in comparisons.pairs if pair.verdict in ("better", "worse", "equivalent")]
    if not decided:
        return f"None of the {len(comparisons.pairs)} pairs can be told apart yet."
    sentences = [pair_sentence(pair, comparisons.margin) for pair in decided[:_MAX_SENTENCES]]
    more = len(decided) - len(sentences)
    return " ".join([*sentences, *([f"{more} more pairs are decided."] if more else [])])


def _print_details(console: Console, comparisons: Comparisons) -> None:
    """Print every pair with its p, every other test and metric, and the difference by kind of case."""
    console.print()
    console.print(table(pair_columns(comparisons), map(pair_cells, comparisons.pairs), names=("arm", "against")))
    console.print()
    for pair in comparisons.pairs:
        print_wrapped(console, sentence(pair, comparisons.margin), "bold")
        for line in [*detail_lines(pair), *metric_lines(comparisons, pair, details=True)]:
            print_wrapped(console, line, indent=3, hang=2)


# All pairs


def _print_pairs(console: Console, comparisons: Comparisons, tiers: Tiers | None, *, plain: bool) -> None:
    if tiers is None:
        lines = _difference_lines(
            "pair", [_pair_row(pair) for pair in comparisons.pairs], console.page_width, plain=plain
        )
        console.print()
        print_wrapped(console, subject_line(comparisons), HEAD)
        _print_block(console, lines)
    elif tiers.places:
        _print_matrix(console, tiers)
    console.print()
    print_wrapped(console, _decided(comparisons))
    if tiers is not None and (settle := settle_words(tiers)):
        print_wrapped(console, settle)
    if tiers is not None and tiers.unscored:
        print_wrapped(console, f"Without a score: {', '.join(tiers.unscored)}.", LOUD)
    _print_remarks(console, comparisons)


def _print_block(console: Console, lines: Sequence[Text]) -> None:
    if lines:
        console.print()
        print_lines(console, lines)


def _pair_row(pair: Comparison) -> _Row:
    one, other = pair.a.split("@")[0], pair.b.split("@")[0]
    name = one if one == other and pair.a != pair.b else f"{pair.a} − {pair.b}"
    return _Row(name, pair.count, pair.verdict, pair.difference, pair.ci95, pair.metric)


def _decided(comparisons: Comparisons) -> str:
    """Say how many pairs are decided, and how."""
    pairs = comparisons.pairs
    decided = sum(pair.verdict in ("better", "worse", "equivalent") for pair in pairs)
    methods = Counter(method_words(pair) for pair in pairs if pair.difference is not None)
    how = [methods.most_common(1)[0][0]] if methods else []
    how += ["Holm"] if len(pairs) > 1 else []
    agreeing = [brief for pair in pairs for brief in brief_lines(pair) if brief.endswith(("agree", "agrees"))]
    basis = ", ".join(how)
    if agreeing and len(agreeing) == sum(bool(pair.robustness) for pair in pairs):
        basis += "; the other tests agree"
    return f"{decided} of {counted(len(pairs), 'pair')} decided{f' ({basis})' if basis else ''}."


def _print_remarks(console: Console, comparisons: Comparisons) -> None:
    """Print what is special about single pairs, and how many pairs the other metrics decide."""
    lines = [
        (f"{pair.a} against {pair.b}: {line}", line)
        for pair in comparisons.pairs
        for line in brief_lines(pair)
        if not line.endswith(("agree", "agrees"))
    ]
    disagreeing = [remark for remark, line in lines if line.startswith("not all tests agree")]
    remarks = [remark for remark, _ in lines if len(disagreeing) <= _MAX_DISAGREEING or remark not in disagreeing]
    if len(disagreeing) > _MAX_DISAGREEING:
        print_wrapped(console, f"On {len(disagreeing)} pairs not all tests agree; --details shows them.")
    for remark in remarks[:_MAX_REMARKS]:
        print_wrapped(console, remark, hang=2)
    if len(remarks) > _MAX_REMARKS:
        console.print(Text(f" and {len(remarks) - _MAX_REMARKS} more remarks: --details shows them", QUIET))
    others = Counter(pair.metric or "score" for pair in comparisons.metrics)
    decided = Counter(pair.metric or "score" for pair in comparisons.metrics if pair.verdict in ("better", "worse"))
    shown = [f"{name} {decided[name]} of {counted(others[name], 'pair')}" for name in [*others][:_MAX_METRICS]]
    if shown:
        more = f" and {len(others) - _MAX_METRICS} more metrics" if len(others) > _MAX_METRICS else ""
        print_wrapped(console, f"Decided by other metrics: {', '.join(shown)}{more}; --details shows them.")


def _print_matrix(console: Console, tiers: Tiers) -> None:
    """Print the verdicts on all pairs: a matrix with one half, or the tiers as a list where there are many arms."""
    places = len(tiers.places)
    unit = f"difference in {tiers.metric}" if tiers.metric else "points by which the row is ahead of the column"
    worse = "  ▼ worse" if any(d.verdict == "worse" for own in tiers.distances.values() for d in own.values()) else ""
    console.print()
    if places >= _LIST_ONLY:
        for number, tier in enumerate(tiers.tiers):
            names = ", ".join(place.label for place in tier)
            first, last = (rank_words(place) for place in (tier[0], tier[-1]))
            ranks = first if first == last else f"{tier[0].rank}–{max(place.worst_rank for place in tier)}"
            print_wrapped(console, f"{ranks}  {tier_words(tiers, number)}", FIRST if number == 0 else "")
            print_wrapped(console, names, QUIET, indent=3)
        return
    print_wrapped(console, f"{unit} · ▲ better{worse}  ? cannot tell", HEAD)
    console.print()
    print_lines(console, _matrix_lines(tiers, console.page_width))


def _matrix_lines(tiers: Tiers, width: int) -> list[Text]:
    labels = [place.label for place in tiers.places]
    shapes = [(True, True), (False, True)] if len(labels) < _GLYPHS_ONLY else []
    for intervals, numbers in shapes:
        columns = _matrix_columns(tiers, labels, intervals=intervals, numbers=numbers)
        if total_width(columns) < width:
            return table_lines(columns)
    return table_lines(_glyph_columns(tiers, labels, width))


def _matrix_columns(tiers: Tiers, labels: Sequence[str], *, intervals: bool, numbers: bool) -> list[Column]:
    columns = [Column("", _row_names(tiers, labels[:-1]))]
    cell = max(
        len(_cell(d, tiers.metric, intervals=intervals)) for own in tiers.distances.values() for d in own.values()
    )
    heads = short_names(labels[1:], max(cell, 14))
    for head, column in zip(heads, labels[1:], strict=True):
        distances = [tiers.distances[row].get(column) for row in labels[:-1]]
        columns.append(
            Column(head, [_cell(d, tiers.metric, intervals=intervals) for d in distances], right=True, gap=3)
        )
    return columns


def _row_names(tiers: Tiers, labels: Sequence[str]) -> list[Text]:
    leading = {place.label for place in tiers.tiers[0]} if len(tiers.tiers) > 1 else set()
    shown = short_names(labels, 24)
    return [Text(name, FIRST if label in leading else "") for name, label in zip(shown, labels, strict=True)]


def _cell(distance: Distance | None, metric: str, *, intervals: bool) -> Text:
    if distance is None:
        return Text("")
    if distance.difference is None:
        return Text("–", QUIET)
    text = f"{GLYPHS[distance.verdict]} {signs(Scale(metric).signed(distance.difference))}"
    if intervals and distance.ci95 is not None:
        text += f"  {interval_words(distance.ci95, metric)}"
    return Text(text, VERDICT_STYLES[distance.verdict])


def _glyph_columns(tiers: Tiers, labels: Sequence[str], width: int) -> list[Column]:
    """Return a matrix with a glyph for each pair, numbered heads, and the difference to the next arm."""
    digits = len(str(len(labels)))
    numbers = [f"{place + 1:>{digits}}" for place in range(len(labels))]
    room = max(12, width - 2 * digits - (digits + 1) * (len(labels) - 1) - 22)
    names = short_names(labels, room)
    leading = len(tiers.tiers[0]) if len(tiers.tiers) > 1 else 0
    rows = [
        Text(f"{n} {name}", FIRST if i < leading else "")
        for i, (n, name) in enumerate(zip(numbers, names, strict=True))
    ]
    columns = [Column("", rows)]
    for place, label in enumerate(labels[1:], start=1):
        distances = [tiers.distances.get(row, {}).get(label) for row in labels]
        marks = [Text("") if d is None else Text(GLYPHS[d.verdict], VERDICT_STYLES[d.verdict]) for d in distances]
        columns.append(Column(numbers[place].strip(), marks, right=True, gap=2 if place == 1 else 1))
    after = [tiers.distances[a][b] for a, b in pairwise(labels)]
    nexts = [*(_cell(distance, tiers.metric, intervals=False) for distance in after), Text("")]
    columns.append(Column("to the next", nexts))
    return columns


# One pair


def _print_pair(
    console: Console, comparisons: Comparisons, tiers: Tiers | None, flips: Sequence[Flip], *, plain: bool
) -> None:
    pair = comparisons.pairs[0]
    turned = tiers is not None and bool(tiers.places) and tiers.places[0].label == pair.b
    names = (pair.b, pair.a) if turned else (pair.a, pair.b)
    width = console.page_width
    _print_block(console, _balance_lines(pair, width, turned=turned, plain=plain))
    lines = _method_lines(pair, tiers)
    if lines:
        console.print()
    for line in lines:
        print_wrapped(console, line)
    for by in dict.fromkeys(group.by for group in pair.groups):
        groups = [group for group in pair.groups if group.by == by]
        largest = sorted(groups, key=lambda group: -group.count)[:_MAX_KINDS]
        rows = [_Row(g.value, g.count, g.verdict, g.difference, g.ci95, pair.metric) for g in groups if g in largest]
        _print_block(console, _difference_lines(by, _turn(rows, turned=turned), width, plain=plain))
        if len(groups) > len(rows):
            console.print(Text(f" and {len(groups) - len(rows)} smaller groups: --details shows them", QUIET))
    rows = [_Row(m.metric or "score", None, m.verdict, m.difference, m.ci95, m.metric) for m in comparisons.metrics]
    if rows:
        _print_block(
            console, _difference_lines("other metrics", _turn(rows[:_MAX_METRICS], turned=turned), width, plain=True)
        )
    if len(rows) > _MAX_METRICS:
        console.print(Text(f" and {len(rows) - _MAX_METRICS} more metrics: --details shows them", QUIET))
    _print_flips(console, flips, names, pair.metric, turned=turned)


def _turn(rows: Sequence[_Row], *, turned: bool) -> list[_Row]:
    return [row.turned() for row in rows] if turned else list(rows)


def _balance_lines(pair: Comparison, width: int, *, turned: bool, plain: bool) -> list[Text]:
    """Return on how many cases the first arm is ahead, level and behind."""
    if pair.count < 2 or pair.labels:  # with labels, these counts would be the uncorrected judgements
        return []
    ahead, behind = (pair.behind, pair.ahead) if turned else (pair.ahead, pair.behind)
    left, right = f"ahead on {ahead}", f"behind on {behind}"
    if plain or width < _NARROW:
        return [Text(f" {left}, level on {pair.tied}, {right}")]
    room = width - len(left) - len(right) - 6
    bar = split([ahead, pair.tied, behind], "█▒░", room)
    counts = [bar.count(mark) for mark in "█▒░"]
    drawn = Text.assemble(("█" * counts[0], FIRST), ("▒" * counts[1], QUIET), ("░" * counts[2], LOUD))
    first = Text.assemble(f" {left}  ", drawn, f"  {right}")
    return [first, Text(f"{' ' * (len(left) + 3 + counts[0])}level on {pair.tied}", QUIET)] if pair.tied else [first]


def _method_lines(pair: Comparison, tiers: Tiers | None) -> list[str]:
    """Say what the verdict is based on, and what would settle an open one."""
    how = [line for line in brief_lines(pair) if line.endswith(("agree", "agrees"))]
    rest = [line for line in brief_lines(pair) if line not in how]
    if pair.count < 2:
        return []  # the headline says so
    first = "; ".join([f"{counted(pair.count, 'case')}, {method_words(pair)}", *how])
    lines = [f"{first}."]
    if pair.verdict == "cannot tell" and pair.detectable is None and pair.difference is not None:
        reason = why_undecided(pair)
        lines.append(f"{reason[:1].upper()}{reason[1:]}.")
    elif tiers is not None and (settle := settle_words(tiers)):
        lines.append(settle)
    return [*lines, *(f"{line[:1].upper()}{line[1:]}." for line in rest)]


def _difference_lines(by: str, rows: Sequence[_Row], width: int, *, plain: bool) -> list[Text]:
    """Return differences with their intervals, drawn on a common axis if there is room."""
    names = short_names([row.name for row in rows], max(16, width - 60) if width < 110 else 44)
    columns = [Column(by, cells(names))]
    if any(row.cases is not None for row in rows):
        columns.append(Column("cases", cells([str(row.cases) for row in rows], QUIET), right=True))
    marks = [Text(GLYPHS[row.verdict], VERDICT_STYLES[row.verdict]) for row in rows]
    signed = [signs(Scale(row.metric).signed(row.difference)) for row in rows]
    bounds = ["–" if row.ci95 is None else interval_words(row.ci95, row.metric) for row in rows]
    numbers = [
        Column("", marks),
        Column("difference", cells(signed), right=True, gap=1),
        Column("95 % CI", cells(bounds)),
    ]
    left = width - 3 - total_width([*columns, *numbers])
    if not plain and width >= _NARROW and left >= MIN_WIDTH:
        columns.append(_drawn(rows, min(_MOST_BAR, left)))
    return table_lines([*columns, *numbers])


def _drawn(rows: Sequence[_Row], width: int) -> Column:
    factor = Scale(rows[0].metric).factor
    ends = [factor * end for row in rows for end in (row.difference, *(row.ci95 or ())) if end is not None]
    axis = Axis(ends, width, zero=True)
    bars = [
        axis.bar(
            None if row.difference is None else factor * row.difference,
            None if row.ci95 is None else (factor * row.ci95[0], factor * row.ci95[1]),
            "" if row.verdict == "cannot tell" else VERDICT_STYLES[row.verdict],
        )
        for row in rows
    ]
    return Column(axis.head(), bars)


def _print_flips(console: Console, flips: Sequence[Flip], names: tuple[str, str], metric: str, *, turned: bool) -> None:
    """Print the cases on which the two arms differ most, with both values and the question."""
    if not flips:
        return
    scale, width = Scale(metric), console.page_width
    whole = not metric and all(abs(100 * one - round(100 * one)) < 1e-6 for flip in flips for one in (flip.a, flip.b))

    def shown(value: float) -> str:
        return f"{100 * value:.0f}" if whole else signs(scale.plain(value))

    if turned:
        flips = [flip.turned() for flip in flips]
    flips = sorted(flips, key=lambda flip: flip.a < flip.b)  # where the first arm has the higher value come first
    pairs = [(flip.a, flip.b) for flip in flips]
    columns = [
        Column("biggest flips", cells([shortened(printable(flip.case), 28) for flip in flips])),
        Column("", cells([shown(first) for first, _ in pairs]), right=True),
        Column("", cells([f": {shown(second)}" for _, second in pairs]), gap=1),
    ]
    room = width - 4 - total_width(columns)
    questions = [shortened_end(one_line(flip.question), max(12, room)) for flip in flips]
    lines = table_lines([*columns, Column("question", cells(questions), gap=3)])
    if width >= _WIDE:
        lines = [
            lines[0],
            *(line for row, flip in zip(lines[1:], flips, strict=True) for line in (row, _said(flip, names))),
        ]
    _print_block(console, lines)


def _said(flip: Flip, names: tuple[str, str]) -> Text:
    """Return both answers on one line, each cut to a few words."""
    answers = zip(names, (flip.answer_a, flip.answer_b), strict=True)
    shown = [f"{shortened(name, 16)}: {shortened_end(one_line(answer), _ANSWER_WIDTH)}" for name, answer in answers]
    return Text(f"   {printable('  ·  '.join(shown))}", QUIET)


def shortened_end(text: str, width: int) -> str:
    """Cut a text at its end if it is too long."""
    line = Text(text)
    line.truncate(width, overflow="ellipsis")
    return line.plain
