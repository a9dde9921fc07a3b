"""Comparisons in the terminal: the verdict, a matrix of all pairs or one pair in detail, notes, what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from rich.text import Text

from fairtrial.analyse.comparison import Comparison, Comparisons
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
from fairtrial.cli.console import Console
from fairtrial.cli.differences import Row, difference_lines
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
from fairtrial.core.text import counted

_GLYPHS_ONLY, _LIST_ONLY = 9, 30  # from so many arms on, a matrix has glyphs only; there are only tiers
_MAX_REMARKS = 6
_MAX_SENTENCES = 3
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
    tiers = comparison_tiers(comparisons)
    if titled:
        print_wrapped(console, _verdict(comparisons) if tiers is None else headline(tiers), "bold")
    if len(comparisons.pairs) == 1:
        print_pair(console, comparisons, tiers, flips, plain=plain)
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
        lines = difference_lines(
            "pair", [_pair_row(pair) for pair in comparisons.pairs], console.page_width, plain=plain
        )
        console.print()
        print_wrapped(console, subject_line(comparisons), HEAD)
        print_block(console, lines)
    elif tiers.places:
        _print_matrix(console, tiers)
    console.print()
    print_wrapped(console, _decided(comparisons))
    if tiers is not None and (settle := settle_words(tiers)):
        print_wrapped(console, settle)
    if tiers is not None and tiers.unscored:
        print_wrapped(console, f"Without a score: {', '.join(tiers.unscored)}.", LOUD)
    _print_remarks(console, comparisons)


def _pair_row(pair: Comparison) -> Row:
    one, other = pair.a.split("@")[0], pair.b.split("@")[0]
    name = one if one == other and pair.a != pair.b else f"{pair.a} − {pair.b}"
    return Row(name, pair.count, pair.verdict, pair.difference, pair.ci95, pair.metric)


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
    shown = [f"{name} {decided[name]} of {counted(others[name], 'pair')}" for name in [*others][:MAX_METRICS]]
    if shown:
        more = f" and {len(others) - MAX_METRICS} more metrics" if len(others) > MAX_METRICS else ""
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
