"""The headline of a comparison: who leads, or what moved between two runs, whichever was named first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.analyse.leaderboard import comparison_leaderboard
from fairtrial.core.formatting import Scale, interval_words, signs
from fairtrial.present.words.leaderboards import continued, headline_parts, name_parts, silent_parts
from fairtrial.present.words.verdicts import (
    DECIDED,
    Lead,
    Piece,
    amount,
    bounds_words,
    joined,
    lead_of,
    margin_words,
    metric_words,
    pair_parts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtrial.analyse.comparison import ComparedArm, Comparison, Comparisons, SourceName

_MOST_SENTENCES = 3


def comparison_headline(comparisons: Comparisons) -> str:
    """Say what came of a comparison, in one or a few sentences."""
    return joined(comparison_parts(comparisons))


def comparison_parts(comparisons: Comparisons) -> list[Piece]:
    """Return the headline of a comparison in pieces, so that a page can link the arms that it names."""
    if (times := two_times(comparisons)) is not None:
        silent = silent_parts(comparisons.silent, comparisons.metric)
        moved = [*_moved_parts(comparisons, *times), *_uncompared_parts(comparisons, times)]
        return [*silent, Piece("; "), *continued(moved)] if silent else moved
    board = comparison_leaderboard(comparisons)
    return _pairs_parts(comparisons) if board is None else headline_parts(board)


def two_times(comparisons: Comparisons) -> tuple[SourceName, SourceName] | None:
    """Return the earlier and the later of two runs whose arms are compared each with itself; None if it is not that."""
    if len(comparisons.names) != 2:
        return None
    arm_of = {one.label: one.arm for one in comparisons.standings}
    if any(arm_of[pair.a] != arm_of[pair.b] for pair in comparisons.pairs):
        return None
    earlier, later = sorted(comparisons.names, key=lambda name: name.began)
    return earlier, later


def pair_name(pair: Comparison, comparisons: Comparisons) -> str:
    """Name a pair in a table: by its arm where that is compared with itself, else `a − b`."""
    arm_of = {one.label: one.arm for one in comparisons.standings}
    return arm_of[pair.a] if two_times(comparisons) else f"{pair.a} − {pair.b}"


def change_title(comparisons: Comparisons) -> str:
    """Say what a table of differences shows."""
    times = two_times(comparisons)
    if times is None:
        return "First minus second, on the cases that both have, with 95 % intervals"
    return f"From {times[0].name} to {times[1].name}, on the cases that both have, with 95 % intervals"


def is_turned(comparisons: Comparisons) -> bool:
    """Return whether a page has to turn its pairs round to say what the headline says.

    Two runs are compared from the earlier to the later one; of two arms, the better one is the subject.
    """
    pair, times = comparisons.pairs[0], two_times(comparisons)
    if times is None:
        return len(comparisons.pairs) == 1 and lead_of(pair).one == pair.b
    source_of = {one.label: one.source for one in comparisons.standings}
    return source_of[pair.b] == times[1].label


def source_name(label: str, comparisons: Comparisons) -> str:
    """Return the display name of a source: `run 3`."""
    return next((one.name for one in comparisons.names if one.label == label), label)


def _moved_parts(comparisons: Comparisons, earlier: SourceName, later: SourceName) -> list[Piece]:
    """Say which arms moved beyond chance from one run to the other, or how large a change would have shown."""
    source_of = {one.label: one.source for one in comparisons.standings}
    arm_of = {one.label: one.arm for one in comparisons.standings}
    leads = [_later_first(lead_of(pair), source_of, later) for pair in comparisons.pairs]
    moved = [lead for lead in leads if lead.verdict in ("better", "worse")]
    on = metric_words(comparisons.metric, lower_is_better=comparisons.pairs[0].lower_is_better)
    when = f"{on} from {earlier.name} to {later.name}"
    if not moved:
        return [Piece(_nothing_moved(comparisons, leads, when))]
    parts: list[Piece] = []
    for place, lead in enumerate(moved[:_MOST_SENTENCES]):
        last = place == min(len(moved), _MOST_SENTENCES) - 1
        parts += [Piece("" if not parts else " and " if last and len(moved) <= _MOST_SENTENCES else ", ")]
        parts += [Piece(arm_of[lead.one], lead.one), Piece(f" {change_words(lead)}")]
    more = len(moved) - _MOST_SENTENCES
    others = f", and {more} more arms moved" if more > 0 else ""
    rest = "" if len(moved) == len(leads) else "; nothing else moved beyond chance"
    return [part for part in [*parts, Piece(f"{others}{when}{rest}.")] if part.text]


def _later_first(lead: Lead, source_of: dict[str, str], later: SourceName) -> Lead:
    return lead if source_of[lead.one] == later.label else lead.turned()


def change_words(lead: Lead) -> str:
    """Say how an arm moved: `gained 7 points (95 % CI 1 to 13)`; by a metric, whether it got better or worse."""
    better = lead.verdict == "better"
    positive = lead if better else lead.turned()
    verb = ("improved by" if better else "got worse by") if lead.metric else ("gained" if better else "lost")
    return f"{verb} {amount(positive)}{bounds_words(positive)}"


def moved_words(arm: str, suite: str, pair: Comparison) -> str:
    """Say how an arm moved: `claude-haiku lost 7 points (95 % CI 1 to 13) on support-qa since the run before`.

    The pair has the later run first.
    """
    lead = lead_of(pair)
    return f"{arm} {change_words(lead if lead.one == pair.a else lead.turned())} on {suite} since the run before"


def _nothing_moved(comparisons: Comparisons, leads: Sequence[Lead], when: str) -> str:
    metric = comparisons.metric
    if all(lead.verdict == "equivalent" for lead in leads):
        return f"Nothing moved by more than {margin_words(comparisons.margin, metric)}{when}."
    said = f"Nothing moved beyond chance{when}"
    if any(lead.verdict == "depends on failures" for lead in leads):
        return f"{said}, unless the trials that failed would have changed it."
    gaps = [pair.detectable for pair in comparisons.pairs if pair.count]
    known = [gap for gap in gaps if gap is not None]
    if not known or len(known) < len(gaps):
        return f"{said}."
    shown = f"{signs(Scale(metric).plain(max(known)))}{'' if metric else ' points'}"
    return f"{said}; a change of {shown} would have shown in 4 of 5 runs."


def _uncompared_parts(comparisons: Comparisons, times: tuple[SourceName, SourceName]) -> list[Piece]:
    """Name the arms that only one of the runs has: ` New in run 3: d. Not in run 3: e.`"""
    earlier, later = times
    only = {name.label: [one for one in comparisons.uncompared if one.source == name.label] for name in times}
    said = ((f" New in {later.name}: ", only[later.label]), (f" Not in {later.name}: ", only[earlier.label]))
    return [Piece(f"{words}{joined(name_parts(arms))}.") for words, arms in said if arms]


def uncompared_words(one: ComparedArm, metric: str) -> str:
    """Give the score of an arm that is in one of the compared runs only: `73.2 (68.6 to 77.9)`."""
    numbers, shown = one.aggregate, signs(Scale(metric).plain(one.aggregate.mean))
    return shown if numbers.ci95 is None else f"{shown} ({interval_words(numbers.ci95, metric)})"


def _pairs_parts(comparisons: Comparisons) -> list[Piece]:
    """State the decided ones of pairs that are not all pairs of some arms, such as arms of different runs."""
    decided = [pair for pair in comparisons.pairs if pair.verdict in DECIDED]
    if not decided:
        on = metric_words(comparisons.metric, lower_is_better=comparisons.pairs[0].lower_is_better)
        return [Piece(f"Too close to call{on}: none of the {len(comparisons.pairs)} pairs is decided.")]
    parts: list[Piece] = []
    for pair in decided[:_MOST_SENTENCES]:
        parts += [*([Piece(" ")] if parts else []), *pair_parts(pair, comparisons.margin)]
    more = len(decided) - _MOST_SENTENCES
    return [*parts, *([Piece(f" {more} more {'pair is' if more == 1 else 'pairs are'} decided.")] if more > 0 else [])]
