"""Comparisons in the terminal: the verdict, a matrix of all pairs or one pair in detail, notes, what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from rich.text import Text

from fairtrial.analyse.comparison import Comparison, Comparisons
from fairtrial.analyse.flips import Flip
from fairtrial.analyse.leaderboard import Distance, Leaderboard, comparison_leaderboard
from fairtrial.cli.console import Console
from fairtrial.cli.differences import DifferenceRow, difference_lines
from fairtrial.cli.forest import forest_lines
from fairtrial.cli.layout import (
    FIRST,
    HEAD,
    LOUD,
    QUIET,
    VERDICT_STYLES,
    Column,
    print_block,
    print_lines,
    print_wrapped,
    table_lines,
    total_width,
)
from fairtrial.cli.pair_page import MAX_METRICS, print_pair
from fairtrial.cli.tables import short_names, table
from fairtrial.core.formatting import Scale, interval_words, signs
from fairtrial.core.many_arms import adjustment
from fairtrial.present.words.changes import (
    comparison_headline,
    is_turned,
    pair_name,
    source_name,
    uncompared_words,
)
from fairtrial.present.words.comparisons import (
    agreement_line,
    brief_lines,
    detail_lines,
    method_words,
    metric_lines,
    pair_cells,
    pair_columns,
    sentence,
    subject_line,
)
from fairtrial.present.words.leaderboards import settle_words
from fairtrial.present.words.verdicts import DECIDED, GLYPHS, WORDS, metric_words
from fairtrial.text.printable import counted

_GLYPHS_ONLY, _LIST_ONLY = 9, 30  # from this many arms on, a matrix has glyphs only; there are only board
_MAX_REMARKS = 6
_MAX_DISAGREEING = 3


def print_comparisons(
    comparisons: Comparisons,
    *,
    flips: Sequence[Flip] = (),
    details: bool = False,
    plain: bool = False,
    titled: bool = True,
) -> None:
    """Print the comparisons with their verdicts, below their headline unless it is printed elsewhere.

    Every number and test of every pair is printed with `details`.
    """
    console = Console()
    board = comparison_leaderboard(comparisons)
    if is_turned(comparisons):
        comparisons, flips = comparisons.turned(), [flip.turned() for flip in flips]  # as the headline has them
    if titled:
        print_wrapped(console, comparison_headline(comparisons), "bold")
    if len(comparisons.pairs) == 1:
        print_pair(console, comparisons, board, flips, plain=plain)
    else:
        _print_pairs(console, comparisons, board, plain=plain, details=details)
    if details:
        _print_details(console, comparisons)
    if comparisons.notes:
        console.print()
    for note in comparisons.notes:
        print_wrapped(console, note, QUIET, hang=2)


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


def _print_pairs(
    console: Console, comparisons: Comparisons, board: Leaderboard | None, *, plain: bool, details: bool
) -> None:
    if board is None:
        rows = [_pair_row(pair, comparisons) for pair in comparisons.pairs]
        lines = difference_lines("pair", rows, console.page_width, plain=plain)
        console.print()
        print_wrapped(console, subject_line(comparisons), HEAD)
        print_block(console, lines)
    elif board.places:
        _print_matrix(console, board, details=details)
    console.print()
    print_wrapped(console, _decided(comparisons))
    if board is not None and (settle := settle_words(board)):
        print_wrapped(console, settle)
    if board is not None and board.unscored:
        print_wrapped(console, f"Without a score: {', '.join(board.unscored)}.", LOUD)
    for one in comparisons.uncompared:
        print_wrapped(
            console,
            f"{one.label}, only in {source_name(one.source, comparisons)}: {uncompared_words(one, comparisons.metric)}",
            QUIET,
        )
    _print_remarks(console, comparisons)


def _pair_row(pair: Comparison, comparisons: Comparisons) -> DifferenceRow:
    return DifferenceRow(
        pair_name(pair, comparisons), pair.count, pair.verdict, pair.difference, pair.ci95, pair.metric
    )


def _decided(comparisons: Comparisons) -> str:
    """Say how many pairs are decided, and how."""
    pairs = [pair for pair in comparisons.pairs if pair.difference is not None]
    decided = sum(pair.verdict in DECIDED for pair in pairs)
    methods = Counter(method_words(pair) for pair in pairs)
    how = [methods.most_common(1)[0][0]] if methods else []
    how += [adjustment(pairs[0].comparisons)] if len(pairs) > 1 else []
    agreeing = [pair for pair in pairs if agreement_line(pair)]
    basis = ", ".join(how)
    if agreeing and len(agreeing) == sum(bool(pair.robustness) for pair in pairs):
        basis += "; the other tests find the same"
    return f"{decided} of {counted(len(pairs), 'pair')} decided{f' ({basis})' if basis else ''}."


def _print_remarks(console: Console, comparisons: Comparisons) -> None:
    """Print what is special about single pairs, and how many pairs the other metrics decide."""
    lines = [
        (f"{pair.a} against {pair.b}: {line}", line)
        for pair in comparisons.pairs
        for line in brief_lines(pair)
        if line != agreement_line(pair)
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
    shown = [f"{name} {decided[name]} of {counted(others[name], 'pair')}" for name in [*others][:MAX_METRICS]]
    if shown:
        more = f" and {len(others) - MAX_METRICS} more metrics" if len(others) > MAX_METRICS else ""
        print_wrapped(console, f"Decided by other metrics: {', '.join(shown)}{more}; --details shows them.")


def _print_matrix(console: Console, board: Leaderboard, *, details: bool) -> None:
    """Print the verdicts on all pairs: a matrix with one half, or the arms as a list where there are many."""
    console.print()
    if len(board.places) >= _LIST_ONLY:
        print_lines(console, forest_lines(board, {}, console.page_width, plain=True, whole=details))
        return
    verdicts = {distance.verdict for own in board.distances.values() for distance in own.values()}
    legend = [f"{GLYPHS[verdict]} {WORDS[verdict]}" for verdict in GLYPHS if verdict in verdicts]
    on = metric_words(board.metric, lower_is_better=board.sign < 0)
    what = f"lead of the row over the column{on or ', in points'}"
    print_wrapped(console, f"{what} · {'  '.join(legend)}", HEAD)
    console.print()
    print_lines(console, _matrix_lines(board, console.page_width))


def _matrix_lines(board: Leaderboard, width: int) -> list[Text]:
    labels = [place.label for place in board.places]
    for intervals in (True, False) if len(labels) < _GLYPHS_ONLY else ():
        columns = _matrix_columns(board, labels, intervals=intervals)
        if total_width(columns) < width:
            return table_lines(columns)
    return table_lines(_glyph_columns(board, labels, width))


def _matrix_columns(board: Leaderboard, labels: Sequence[str], *, intervals: bool) -> list[Column]:
    columns = [Column("", _row_names(board, labels[:-1]))]
    cell = max(len(_cell(d, board, intervals=intervals)) for own in board.distances.values() for d in own.values())
    heads = short_names(labels[1:], max(cell, 14))
    for head, column in zip(heads, labels[1:], strict=True):
        distances = [board.distances[row].get(column) for row in labels[:-1]]
        columns.append(Column(head, [_cell(d, board, intervals=intervals) for d in distances], right=True, gap=3))
    return columns


def _row_names(board: Leaderboard, labels: Sequence[str]) -> list[Text]:
    shown = short_names(labels, 24)
    return [Text(name, FIRST if label in board.front else "") for name, label in zip(shown, labels, strict=True)]


def _cell(distance: Distance | None, board: Leaderboard, *, intervals: bool) -> Text:
    """Return the lead of the row over the column: positive where it is better, whatever the metric."""
    if distance is None:
        return Text("")
    if distance.difference is None:
        return Text("–", QUIET)
    sign, metric = board.sign, board.metric
    text = f"{GLYPHS[distance.verdict]} {signs(Scale(metric).signed(sign * distance.difference))}"
    if intervals and distance.ci95 is not None:
        bounds = distance.ci95 if sign > 0 else (-distance.ci95[1], -distance.ci95[0])
        text += f"  {interval_words(bounds, metric)}"
    return Text(text, VERDICT_STYLES[distance.verdict])


def _glyph_columns(board: Leaderboard, labels: Sequence[str], width: int) -> list[Column]:
    """Return a matrix with a glyph for each pair, numbered heads, and the difference to the next arm."""
    digits = len(str(len(labels)))
    numbers = [f"{place + 1:>{digits}}" for place in range(len(labels))]
    room = max(12, width - 2 * digits - (digits + 1) * (len(labels) - 1) - 22)
    names = short_names(labels, room)
    rows = [
        Text(f"{number} {name}", FIRST if label in board.front else "")
        for number, name, label in zip(numbers, names, labels, strict=True)
    ]
    columns = [Column("", rows)]
    for place, label in enumerate(labels[1:], start=1):
        distances = [board.distances.get(row, {}).get(label) for row in labels]
        marks = [Text("") if d is None else Text(GLYPHS[d.verdict], VERDICT_STYLES[d.verdict]) for d in distances]
        columns.append(Column(numbers[place].strip(), marks, right=True, gap=2 if place == 1 else 1))
    after = [board.distances[a][b] for a, b in pairwise(labels)]
    nexts = [*(_cell(distance, board, intervals=False) for distance in after), Text("")]
    columns.append(Column("to the next", nexts))
    return columns
