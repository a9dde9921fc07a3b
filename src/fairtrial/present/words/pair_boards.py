"""Sentences and table cells about the board of votes and verdicts on pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.core.many_arms import MOST_RATED
from fairtrial.present.words.leaderboards import arm_part, first_parts, name_parts
from fairtrial.present.words.verdicts import Piece
from fairtrial.stats import power

if TYPE_CHECKING:
    from fairtrial.analyse.pair_board import BoardArm, Concord, PairBoard, Preference

_WHO = {"votes": "people prefer", "verdicts": "judges prefer", "both": "people and judges prefer"}
_BY = {"votes": " by the votes", "verdicts": " by the verdicts", "both": " by the votes and verdicts"}
_WHAT = {"votes": "vote", "verdicts": "verdict", "both": "vote and verdict"}
_TOO_FEW = "so far: too few to say who leads."
_CIRCULAR = "fit no order of the arms: who is preferred depends on the pair."
_FAR = 1000.0  # a limit this far from the middle is no limit
_PREFERENCE = 0.1  # beyond one half: 60 to 40


def board_headline(board: PairBoard) -> list[Piece]:
    """Say who leads, and how sure that is, in pieces, so that a page can link the arms that it names."""
    if not board.arms:
        return [Piece("Nobody has voted yet." if board.by != "verdicts" else "No judge has compared answers yet.")]
    if not board.rated:
        return [Piece(f"{counted(board)} {_CIRCULAR if board.circular else _TOO_FEW}")]
    leading, behind = board.leading, [arm for arm in board.arms if arm.rank > 1]
    first, by = board.arms[0], _BY[board.by]
    if first.rank > 1 or not behind:
        return _undecided(board)
    gap = behind[0].to_first
    if gap is None or not gap.decided:
        return first_parts(leading, len(board.arms), by)
    preferred = Piece(f" {_preferred(gap)}.")
    if len(leading) == 1:
        return [
            arm_part(first),
            Piece(f" leads{by}: {_WHO[board.by]} it to "),
            arm_part(behind[0]),
            Piece(_next(board)),
            preferred,
        ]
    tied = Piece(f" are tied for first{by}; {_WHO[board.by]} ")
    return [*name_parts(leading), tied, arm_part(first), Piece(" to "), arm_part(behind[0]), preferred]


def _undecided(board: PairBoard) -> list[Piece]:
    """Say that no arm is better than another by these votes."""
    if len(board.arms) != 2:
        return [Piece(f"Too close to call by {counted(board)}: no clear leader among the {len(board.arms)} arms.")]
    first, other = board.arms
    return [
        arm_part(first), Piece(" and "), arm_part(other),
        Piece(f" are too close to call by {counted(board)}: {first.label} is preferred {_preferred(other.to_first)}."),
    ]  # fmt: skip


def _next(board: PairBoard) -> str:
    return ", the next," if len(board.arms) > 2 else ""


def _preferred(gap: Preference | None) -> str:
    if gap is None:
        return "more often"
    bounds = "" if gap.ci95 is None else f" (95 % CI {100 * gap.ci95[0]:.0f} to {100 * gap.ci95[1]:.0f})"
    return f"{100 * gap.share:.0f} % of the time{bounds}"


def counted(board: PairBoard) -> str:
    """Say how many votes there are: `1 vote`, `69 votes`, `120 votes and verdicts`."""
    one = _WHAT[board.by]
    if board.by == "both":
        return f"{board.battles:,} votes and verdicts"
    return f"{board.battles:,} {one}{'' if board.battles == 1 else 's'}"


def board_ranks(arm: BoardArm) -> str:
    """Format the ranks that an arm may have: `1`, `1–2`."""
    return str(arm.rank) if arm.rank == arm.worst_rank else f"{arm.rank}–{arm.worst_rank}"


def rating_words(arm: BoardArm) -> str:
    """Format a rating."""
    return "–" if arm.rating is None else f"{arm.rating:.0f}"


def rating_bounds(arm: BoardArm) -> str:
    """Format the interval of a rating; a limit that no vote sets is infinite."""
    return "" if arm.ci95 is None else f"{_limit(arm.ci95[0])} to {_limit(arm.ci95[1])}"


def _limit(value: float) -> str:
    return f"{value:.0f}" if abs(value - 1000) < _FAR else "∞" if value > 0 else "−∞"


def won_words(arm: BoardArm) -> str:
    """Say how many comparisons an arm won and lost; the others were ties."""
    return f"{arm.won} won, {arm.lost} lost"


def chosen_words(arm: BoardArm) -> str:
    """Say how often an arm is preferred to the first: `36 % (28 to 45)`."""
    if arm.to_first is None:
        return "–"
    share, bounds = 100 * (1 - arm.to_first.share), arm.to_first.ci95
    return f"{share:.0f} %" + (
        "" if bounds is None else f" ({100 - 100 * bounds[1]:.0f} to {100 - 100 * bounds[0]:.0f})"
    )


def board_next_step(board: PairBoard) -> str:
    """Say what is missing, or what it would take to tell the first two apart; empty if nothing is."""
    if board.apart:
        groups = " | ".join(", ".join(names[:5]) for names in board.apart[:4])
        return f"Never compared with each other, not even through others: {groups}. More votes will link them."
    if board.circular:
        return (
            "There are no ratings: no single strength for each arm explains who won, as when A beats B, B beats C, and "
            "C beats A. `fairtrial rank` shows every pair."
        )
    if len(board.arms) > MOST_RATED:
        return f"There are no ratings of more than {MOST_RATED:,} arms: this is who won and lost."
    if not board.rated:
        return "Ratings appear once no arm, and no group of arms, has only won or only lost." if board.arms else ""
    if len(board.leading) < 2:
        return ""
    needed = round(power(0.5, _PREFERENCE), -1)
    tied = "two" if len(board.leading) == 2 else len(board.leading)
    return (
        f"The first {tied} are too close to call. It takes about {needed} votes on one pair of arms to show a "
        "preference of 60 : 40."
    )


def concord_words(concord: Concord | None) -> str:
    """Say how often the judge chose as people did: `the judge agrees in 12 of 15 votes`."""
    if concord is None:
        return ""
    who = "The judge" if concord.judge else "The score"
    return f"{who} agrees with {concord.agreed} of {concord.decided} votes in which both prefer one answer"


def concord_share(concord: Concord) -> str:
    """Format the share of agreement for a table: `80 % (55 to 93)`."""
    bounds = "" if concord.ci95 is None else f" ({100 * concord.ci95[0]:.0f} to {100 * concord.ci95[1]:.0f})"
    return f"{100 * concord.agreed / concord.decided:.0f} %{bounds}"
