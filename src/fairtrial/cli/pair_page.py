"""One pair in the terminal: on how many cases each arm is ahead, kinds of cases, other metrics, the biggest flips."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from fairtrial.analyse.comparison import Comparison, Comparisons
from fairtrial.analyse.flips import Flip
from fairtrial.analyse.leaderboard import Leaderboard
from fairtrial.cli.axis import split
from fairtrial.cli.console import Console
from fairtrial.cli.differences import NARROW, DifferenceRow, difference_lines
from fairtrial.cli.layout import FIRST, LOUD, QUIET, Column, cells, print_block, print_wrapped, table_lines, total_width
from fairtrial.cli.tables import shortened
from fairtrial.core.formatting import Scale, signs
from fairtrial.present.words.changes import two_times
from fairtrial.present.words.comparisons import agreement_line, brief_lines, method_words, still_words, why_undecided
from fairtrial.present.words.leaderboards import settle_words
from fairtrial.text.printable import counted, one_line, printable, sentence_of

MAX_METRICS = 8
_MAX_KINDS = 8
_ANSWER_WIDTH = 40
_WIDE = 118  # from here on, there is room for both answers


def print_pair(
    console: Console, comparisons: Comparisons, board: Leaderboard | None, flips: Sequence[Flip], *, plain: bool
) -> None:
    """Print the only pair of a comparison."""
    pair = comparisons.pairs[0]
    width = console.page_width
    over_time = two_times(comparisons) is not None
    print_block(console, _balance_lines(pair, width, plain=plain, over_time=over_time))
    lines = _method_lines(pair, board)
    if lines:
        console.print()
    for line in lines:
        print_wrapped(console, line)
    for by in dict.fromkeys(group.by for group in pair.groups):
        groups = [group for group in pair.groups if group.by == by]
        largest = sorted(groups, key=lambda group: -group.count)[:_MAX_KINDS]
        rows = [
            DifferenceRow(g.value, g.count, g.verdict, g.difference, g.ci95, pair.metric)
            for g in groups
            if g in largest
        ]
        print_block(console, difference_lines(by, rows, width, plain=plain))
        if len(groups) > len(rows):
            console.print(Text(f" and {len(groups) - len(rows)} smaller groups: --details shows them", QUIET))
    rows = [
        DifferenceRow(m.metric or "score", None, m.verdict, m.difference, m.ci95, m.metric) for m in comparisons.metrics
    ]
    if rows:
        print_block(console, difference_lines("other metrics", rows[:MAX_METRICS], width, plain=True))
    if len(rows) > MAX_METRICS:
        console.print(Text(f" and {len(rows) - MAX_METRICS} more metrics: --details shows them", QUIET))
    _print_flips(console, flips, (pair.a, pair.b), pair.metric)


def _balance_lines(pair: Comparison, width: int, *, plain: bool, over_time: bool) -> list[Text]:
    """Return on how many cases the first arm is ahead, level and behind, or better and worse than before."""
    if pair.count < 2 or pair.labels:  # with labels, these counts would be the uncorrected judgements
        return []
    more, less = ("better", "worse") if over_time else ("ahead", "behind")
    left, right = f"{more} on {pair.ahead}", f"{less} on {pair.behind}"
    if plain or width < NARROW:
        return [Text(f" {left}, level on {pair.tied}, {right}")]
    room = width - len(left) - len(right) - 6
    bar = split([pair.ahead, pair.tied, pair.behind], "█▒░", room)
    counts = [bar.count(mark) for mark in "█▒░"]
    drawn = Text.assemble(("█" * counts[0], FIRST), ("▒" * counts[1], QUIET), ("░" * counts[2], LOUD))
    first = Text.assemble(f" {left}  ", drawn, f"  {right}")
    return [first, Text(f"{' ' * (len(left) + 3 + counts[0])}level on {pair.tied}", QUIET)] if pair.tied else [first]


def _method_lines(pair: Comparison, board: Leaderboard | None) -> list[str]:
    """Say what the verdict is based on, and what would settle an open one."""
    how = [line for line in [agreement_line(pair)] if line]
    rest = [line for line in brief_lines(pair) if line not in how]
    if pair.count < 2:
        return [*map(sentence_of, rest)]  # the headline says that there is one case
    first = "; ".join([f"{counted(pair.count, 'case')}, {method_words(pair)}", *how])
    lines = [f"{first}."]
    if pair.verdict == "cannot tell" and pair.detectable is None and pair.difference is not None:
        lines += filter(None, [still_words(pair), sentence_of(why_undecided(pair))])
    elif board is not None and (settle := settle_words(board)):
        lines.append(settle)
    return [*lines, *map(sentence_of, rest)]


def _print_flips(console: Console, flips: Sequence[Flip], names: tuple[str, str], metric: str) -> None:
    """Print the cases on which the two arms differ most, with both values and the question."""
    if not flips:
        return
    scale, width = Scale(metric), console.page_width
    whole = not metric and all(abs(100 * one - round(100 * one)) < 1e-6 for flip in flips for one in (flip.a, flip.b))

    def shown(value: float) -> str:
        return f"{100 * value:.0f}" if whole else signs(scale.plain(value))

    flips = sorted(flips, key=lambda flip: flip.a < flip.b)  # where the first arm has the higher value come first
    pairs = [(flip.a, flip.b) for flip in flips]
    columns = [
        Column("biggest flips", cells([shortened(printable(flip.case), 28) for flip in flips])),
        Column("", cells([shown(first) for first, _ in pairs]), right=True),
        Column("", cells([f": {shown(second)}" for _, second in pairs]), gap=1),
    ]
    room = width - 4 - total_width(columns)
    questions = [_shortened_end(one_line(flip.question), max(12, room)) for flip in flips]
    lines = table_lines([*columns, Column("question", cells(questions), gap=3)])
    if width >= _WIDE:
        lines = [
            lines[0],
            *(line for row, flip in zip(lines[1:], flips, strict=True) for line in (row, _said(flip, names))),
        ]
    print_block(console, lines)


def _said(flip: Flip, names: tuple[str, str]) -> Text:
    """Return both answers on one line, each cut to a few words."""
    answers = zip(names, (flip.answer_a, flip.answer_b), strict=True)
    shown = [f"{shortened(name, 16)}: {_shortened_end(one_line(answer), _ANSWER_WIDTH)}" for name, answer in answers]
    return Text(f"   {printable('  ·  '.join(shown))}", QUIET)


def _shortened_end(text: str, width: int) -> str:
    line = Text(text)
    line.truncate(width, overflow="ellipsis")
    return line.plain
