"""The table of arms, the same in the terminal, pages, reports, Markdown, notebooks and comments.

A statistic that gets a column here is shown by all of them. The terminal has no room for everything: it draws some
columns as a picture, and prints most others with `--details`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from fairtrial.analyse.leaderboard import Contender, Leaderboard
from fairtrial.analyse.summary import ArmSummary, ranked
from fairtrial.core.formatting import interval_words, milliseconds, money, number
from fairtrial.present.words.leaderboards import rank_words
from fairtrial.present.words.limits import limit_counts
from fairtrial.present.words.solving import cost_cell, is_worth_a_column

In = Literal["picture", "table", "details"]  # of the terminal: where a column is shown there


class ArmRow(NamedTuple):
    """An arm, and its place on the leaderboard if it has one."""

    arm: ArmSummary
    place: Contender | None = None


def _always(_: Sequence[ArmRow]) -> bool:
    return True


class ArmColumn(NamedTuple):
    """One column: its name, and how its cells are made."""

    name: str
    cell: Callable[[ArmRow], str]
    terminal: In = "details"
    title: str = ""  # where there is more room for its name than in the terminal
    needed: Callable[[Sequence[ArmRow]], bool] = _always  # whether it says anything about these arms
    warns: Callable[[ArmRow], bool] = lambda _: False  # whether a cell should catch the eye

    @property
    def long_name(self) -> str:
        """The name where there is room for it."""
        return self.title or self.name

    @property
    def heading(self) -> str:
        """The name at the head of a column of a page; `sd` stays as it is."""
        return self.long_name if len(self.name) < 3 else self.long_name[:1].upper() + self.long_name[1:]


class ArmTable(NamedTuple):
    """Columns, rows, and for every row the text of each cell."""

    columns: list[ArmColumn]
    rows: list[ArmRow]
    cells: list[list[str]]


def _interval(row: ArmRow) -> str:
    numbers = row.arm.aggregate
    if numbers.ci95 is None:
        return "n = 1" if numbers.count == 1 else "–"
    return interval_words(numbers.ci95)


def _latency(row: ArmRow) -> str:
    return f"{milliseconds(row.arm.latency_ms.p50)} / {milliseconds(row.arm.latency_ms.p95)}"


COLUMNS = [
    ArmColumn(
        "rank",
        lambda row: rank_words(row.place) if row.place else "–",
        "picture",
        needed=lambda rows: sum(row.place is not None for row in rows) > 1,
    ),
    ArmColumn("arm", lambda row: row.arm.arm, "picture"),
    ArmColumn("score", lambda row: number(row.arm.aggregate.mean), "picture"),
    ArmColumn("95 % CI", _interval, "picture"),
    ArmColumn("sd", lambda row: number(row.arm.aggregate.std_dev)),
    ArmColumn("cases", lambda row: f"{row.arm.aggregate.count:,}"),
    ArmColumn(
        "scored",
        lambda row: f"{row.arm.scored:,}/{row.arm.trials:,}",
        warns=lambda row: row.arm.scored < row.arm.trials,
    ),
    ArmColumn(
        "limits",
        lambda row: limit_counts(row.arm.limits) or "–",
        title="ended at a limit",
        needed=lambda rows: any(row.arm.limits for row in rows),
    ),
    ArmColumn("cost", lambda row: money(row.arm.cost), needed=lambda rows: any(row.arm.cost_usd != 0 for row in rows)),
    ArmColumn(
        "$ / solved",
        lambda row: cost_cell(row.arm),
        title="cost per solved",
        needed=lambda rows: any(is_worth_a_column(row.arm) for row in rows),
    ),
    ArmColumn(
        "p50 / p95",
        _latency,
        title="latency, p50 / p95",
        needed=lambda rows: any(row.arm.latency_ms.p50 is not None for row in rows),
    ),
    ArmColumn(
        "tokens",
        lambda row: f"{row.arm.prompt_tokens:,} / {row.arm.completion_tokens:,}",
        title="tokens in / out",
        needed=lambda rows: any(row.arm.prompt_tokens or row.arm.completion_tokens for row in rows),
    ),
]


def arm_table(
    arms: Sequence[ArmSummary], board: Leaderboard | None = None, shown: Sequence[In] = ("picture", "table", "details")
) -> ArmTable:
    """Return the table of arms, the best first, with the columns that say anything about them."""
    places = {one.label: one for one in board.places} if board else {}
    order = {label: place for place, label in enumerate(places)}
    listed = sorted(ranked(arms), key=lambda arm: order.get(arm.arm, len(order)))
    rows = [ArmRow(arm, places.get(arm.arm)) for arm in listed]
    columns = [one for one in COLUMNS if one.terminal in shown and one.needed(rows)]
    return ArmTable(columns, rows, [[column.cell(row) for column in columns] for row in rows])
