"""The headline of a run: who leads, and how sure that is. The same words in the terminal, reports and web pages.

Two arms get the sentence of their pair (`verdicts`). With more, the arms that may be first are named or counted; they
are those of rank 1, of which no two can be separated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from fairtrial.core.answer import failure_words
from fairtrial.core.formatting import Scale, interval_words, signs
from fairtrial.present.words.verdicts import (
    DECIDED,
    GLYPHS,
    Lead,
    Piece,
    amount,
    bounds_words,
    joined,
    lead_between,
    margin_words,
    metric_words,
    stated_words,
    unless_words,
    verdict_parts,
)
from fairtrial.text.printable import counted

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Silent
    from fairtrial.analyse.leaderboard import Contender, Distance, Leaderboard

_MOST_NAMES = 3  # of arms in the headline; others are counted
_MOST_REASONS = 2  # why an arm never answered


def headline(board: Leaderboard) -> str:
    """Say who leads, and how far the next is behind, in one sentence."""
    return joined(headline_parts(board))


def headline_parts(board: Leaderboard) -> list[Piece]:
    """Return the headline in pieces, so that a page can link the arms that it names."""
    silent = silent_parts(board.silent, board.metric)
    if not board.places:
        return [*silent, Piece(".")] if silent else [Piece("No answer has a score yet.")]
    rest = _standing_parts(board)
    return [*silent, Piece("; "), *continued(rest)] if silent else rest


def _standing_parts(board: Leaderboard) -> list[Piece]:
    first = board.places[0]
    if len(board.places) == 1:
        return [arm_part(first), Piece(f" {_alone(first, board)}.")]
    if len(board.places) == 2:
        other = board.places[1].label
        return verdict_parts(lead_between(board, first.label, other), board.margin, board.failed)
    if first.rank > 1:
        return _overtaken(board)
    behind = [one for one in board.places if one.rank > 1]
    if not behind:
        return _all_tied(board)
    if len(board.leading) <= _MOST_NAMES and (gap := _gap(board, behind[0])) is not None:
        return _named(board, gap)
    return _counted(board, len(behind))


def continued(parts: list[Piece]) -> list[Piece]:
    """Return a sentence as it continues after a semicolon: the name of an arm keeps its spelling."""
    first, *rest = parts
    return parts if first.arm else [Piece(f"{first.text[:1].lower()}{first.text[1:]}"), *rest]


def silent_parts(silent: Sequence[Silent], metric: str) -> list[Piece]:
    """Say which arms never answered, and why: `down never answered (30 timed out)`; nothing of those not asked yet."""
    silent = [one for one in silent if one.ended]
    if len(silent) > _MOST_NAMES:
        return [Piece(f"{len(silent)} arms have no {metric or 'score'}")]
    parts: list[Piece] = []
    for one in silent:
        kinds = [f"{count:,} {failure_words(kind)}" for kind, count in one.failures.items()]
        why = f" ({', '.join(kinds[:_MOST_REASONS])}{', …' if len(kinds) > _MOST_REASONS else ''})" if kinds else ""
        unanswered = sum(one.failures.values()) == one.ended
        said = f" never answered{why}" if unanswered else f" has no {metric or 'score'}{why}"
        parts += [*([Piece("; ")] if parts else []), Piece(one.label, one.label), Piece(said)]
    return parts


def _alone(contender: Contender, board: Leaderboard) -> str:
    """Give the score of the only arm."""
    numbers = contender.aggregate
    shown = signs(Scale(board.metric).plain(numbers.mean))
    value = f"has a {board.metric} of {shown}" if board.metric else f"scores {shown}"
    if numbers.ci95 is None:
        return f"{value} on {'one case' if numbers.count == 1 else f'{numbers.count} cases'}"
    return f"{value} (95 % CI {interval_words(numbers.ci95, board.metric)})"


def _overtaken(board: Leaderboard) -> list[Piece]:
    """Say that the arm with the best mean is worse than another one on the cases that both have."""
    first = board.places[0]
    leads = (lead_between(board, one.label, first.label) for one in board.places[1:])
    lead = next(lead for lead in leads if lead.verdict == "better")
    return [
        arm_part(first),
        Piece(f" has the best mean{_on(board)}, but "),
        Piece(lead.one, lead.one),
        Piece(f" is {_better_by(lead)} on the {counted(lead.cases, 'case')} that both have{bounds_words(lead)}."),
    ]


def _better_by(lead: Lead) -> str:
    return f"better by {amount(lead)}" if lead.metric else f"{amount(lead)} better"


def _all_tied(board: Leaderboard) -> list[Piece]:
    verdicts = {distance.verdict for others in board.distances.values() for distance in others.values()}
    if board.every_pair and verdicts == {"equivalent"}:
        within = margin_words(board.margin, board.metric)
        return [Piece(f"All {len(board.places)} arms are equivalent{_on(board)} within {within}.")]
    return [Piece(f"Too close to call{_on(board)}: no clear leader among the {len(board.places)} arms.")]


def _gap(board: Leaderboard, behind: Contender) -> Lead | None:
    """Return by how much a leading arm is better than one behind; None if no leading arm is."""
    leading = board.leading if board.every_pair else [one for one in board.leading if one.to_first is None]
    leads = (lead_between(board, one.label, behind.label) for one in leading)
    return next((lead for lead in leads if lead.verdict == "better"), None)


def _named(board: Leaderboard, gap: Lead) -> list[Piece]:
    """Name the arms that may be first, and say how far the next one is behind."""
    leading = board.leading
    next_arm = Piece(gap.other, gap.other)
    if len(leading) == 1:
        said = f", the next, is {amount(gap)} behind{bounds_words(gap)}."
        return [arm_part(leading[0]), Piece(f" leads{_on(board)}; "), next_arm, Piece(said)]
    tied = f" {_tied(board)}{_on(board)}; "
    behind = [Piece(f" is {amount(gap)} behind "), Piece(gap.one, gap.one), Piece(f"{bounds_words(gap)}.")]
    return [*name_parts(leading), Piece(tied), next_arm, *behind]


def _tied(board: Leaderboard) -> str:
    """Say why several arms may be first."""
    labels = [one.label for one in board.leading] if board.every_pair else []
    verdicts = {board.distances[a][b].verdict for place, a in enumerate(labels) for b in labels[place + 1 :]}
    if verdicts == {"equivalent"}:
        return f"lead and are equivalent within {margin_words(board.margin, board.metric)}"
    return "are tied for first"


def _counted(board: Leaderboard, behind: int) -> list[Piece]:
    """Name the arm with the best mean, or those that share it; count who else may be first, and who is ruled out."""
    best = [one for one in board.leading if _same(one.aggregate.mean, board.places[0].aggregate.mean)]
    others = len(board.places) - len(best)
    racing = others - behind
    several = len(best) > 1
    highest = (
        f"{'come' if several else 'comes'} first{_on(board)}"
        if board.metric
        else f"score{'' if several else 's'} highest"
    )
    still = f"; {racing} {'is' if racing == 1 else 'are'} still in the race" if racing else ""
    cases = f"{board.cases:,} {'case rules' if board.cases == 1 else 'cases rule'}"
    which = f"all of the other {others}" if behind == others else f"{behind} of the other {others}"
    return [*name_parts(best), Piece(f" {highest}. {cases} out {which} as the best{still}.")]


def _same(one: float | None, other: float | None) -> bool:
    return math.isclose(one or 0.0, other or 0.0, rel_tol=1e-9, abs_tol=1e-12)


def _on(board: Leaderboard) -> str:
    return metric_words(board.metric, lower_is_better=board.sign < 0)


class HasLabel(Protocol):
    """An arm of a ranking, whatever it is ranked by."""

    @property
    def label(self) -> str: ...


def arm_part(arm: HasLabel) -> Piece:
    """Return the name of an arm as a piece of a headline."""
    return Piece(arm.label, arm.label)


def name_parts(arms: Sequence[HasLabel]) -> list[Piece]:
    """Return the names of the leading arms: `a and b`, `a, b and c`, `a, b and 4 more`."""
    shown = [arm_part(arm) for arm in arms]
    if len(arms) > _MOST_NAMES:
        shown = [*shown[:2], Piece(f"{len(arms) - 2} more")]
    parts: list[Piece] = []
    for place, name in enumerate(shown):
        between = "" if place == 0 else " and " if place == len(shown) - 1 else ", "
        parts += [Piece(between), name] if between else [name]
    return parts


def first_parts(leading: Sequence[HasLabel], arms: int, by: str) -> list[Piece]:
    """Say who is first by votes or verdicts on pairs, or who may be."""
    if len(leading) == 1:
        return [arm_part(leading[0]), Piece(f" is first{by}.")]
    if len(leading) in (0, arms) and arms > 2:
        return [Piece(f"Too close to call{by}: no clear leader among the {arms} arms.")]
    tied = "are too close to call" if len(leading) == arms else "are tied for first"
    return [*name_parts(leading), Piece(f" {tied}{by}.")]


def distance_words(distance: Distance | None, metric: str = "") -> str:
    """Say how far an arm is from the first one, in a table: `10.4 behind`, `0.5 apart`."""
    if distance is None or distance.difference is None:
        return "no cases in common" if distance else ""
    shown = signs(Scale(metric).plain(abs(distance.difference)))
    words = {"worse": "behind", "better": "ahead", "equivalent": "apart, equivalent"}
    return f"{shown} {words.get(distance.verdict, 'apart')}"


def decided_words(board: Leaderboard) -> str:
    """Say how many pairs are decided: `8 of 10 pairs are decided.`"""
    verdicts = [distance.verdict for others in board.distances.values() for distance in others.values()]
    if len(verdicts) == 1:
        return ""
    return f"{sum(verdict in DECIDED for verdict in verdicts)} of {len(verdicts)} pairs are decided."


def standing_words(board: Leaderboard) -> tuple[str, str]:
    """Return the glyph and the words for the position of the first arm: `▲ ahead by 8.1`, `? a tie of 3`."""
    leading = board.leading
    if len(board.places) == 1:
        return "", "the only arm"
    first, second = board.places[0].label, board.places[1].label
    if [one.label for one in leading] == [first]:
        lead = lead_between(board, first, second)
        ahead = f"ahead by {signs(Scale(board.metric).plain(lead.lead or 0.0))}"
        return GLYPHS["better"], ahead if lead.verdict == "better" else "leads"
    if len(leading) > 1 and "equivalent" in _tied(board):
        return GLYPHS["equivalent"], "equivalent"
    return GLYPHS["cannot tell"], "a tie" if len(leading) == 2 else f"a tie of {len(leading)}"


def rank_words(contender: Contender) -> str:
    """Format the ranks that an arm may have: `1`, `1–2`."""
    if contender.rank == contender.worst_rank:
        return str(contender.rank)
    return f"{contender.rank}–{contender.worst_rank}"


def settle_words(board: Leaderboard) -> str:
    """Say what holds all the same, which gaps these cases would show, and what would break the tie for first."""
    still = [unless_words(one.ahead, one.breakpoint, board.metric, one.other) for one in board.unless[:_MOST_NAMES]]
    stated = stated_words(board.stated, board.metric)
    return " ".join(filter(None, [stated, *still, _detectable_words(board), _needed_words(board)]))


def _detectable_words(board: Leaderboard) -> str:
    found = sorted(board.detectable, key=lambda one: one.gap)
    if not found:
        return ""
    first, least, most = board.places[0].label, found[0], found[-1]
    counts = sorted({one.count for one in found})
    cases = f"{counts[0]:,} to {counts[-1]:,} cases" if len(counts) > 1 else counted(counts[0], "case")
    gaps = f"a gap of {_gap_words(least.gap, board)} between {first} and {least.other}"
    if len(found) > 1:
        gaps = (
            f"a gap to {first} of {_gap_words(least.gap, board)} ({least.other}) to {_gap_words(most.gap, board)} "
            f"({most.other})"
        )
    rough = " Few cases account for these differences: it may take more." if any(one.rough for one in found) else ""
    return f"In 4 of 5 runs, {cases} would show {gaps}.{rough}"


def _gap_words(gap: float, board: Leaderboard) -> str:
    scale = Scale(board.metric)
    return f"{signs(scale.plain(gap))}{'' if board.metric else scale.unit}"


def _needed_words(board: Leaderboard) -> str:
    if board.to_settle is None:
        return ""
    other, gap, cases = board.to_settle
    return (
        f"Detecting a {Scale(board.metric).factor * gap:g}-point gap between {board.places[0].label} and {other} takes "
        f"about {cases:,} cases."
    )
