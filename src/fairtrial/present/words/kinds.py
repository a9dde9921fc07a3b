"""Tables of means by kind of case, shared by the terminal, Markdown, report and web page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairtrial.core.formatting import interval_words, number
from fairtrial.text.printable import counted

if TYPE_CHECKING:
    from fairtrial.analyse.kind_means import KindMeans
    from fairtrial.stats import Aggregate

NOTE = "Each 95 % interval is about its own group of cases; none is adjusted for the number of groups."


class KindRow(NamedTuple):
    """One kind of case: its name, its number of cases with a score, and one cell for each arm."""

    kind: str
    cases: str
    cells: list[str]


class KindTable(NamedTuple):
    """The kinds of one attribute. `more` says how many smaller kinds are not shown."""

    by: str
    arms: list[str]
    rows: list[KindRow]
    more: int = 0


def kind_tables(
    kinds: KindMeans,
    arms: Sequence[str],
    *,
    most: int | None = None,
    whole: bool = False,
    cell: Callable[[Aggregate | None], str] | None = None,
) -> list[KindTable]:
    """Return a table for every attribute, with its `most` largest kinds.

    Unless the `whole` is wanted, kinds to which every case belongs are left out: they say what the run's table says.
    """
    tables = []
    for by, means in kinds.means.items():
        shown = [kind for kind in means if means[kind] and (whole or kinds.cases[by][kind] < kinds.case_count)]
        largest = set(sorted(shown, key=lambda kind: -kinds.cases[by][kind])[:most])
        rows = [_row(kind, means[kind], arms, cell or mean_text) for kind in shown if kind in largest]
        if rows:
            tables.append(KindTable(by, list(arms), rows, len(shown) - len(rows) + kinds.left_out.get(by, 0)))
    return tables


def _row(
    kind: str, means: dict[str, Aggregate], arms: Sequence[str], cell: Callable[[Aggregate | None], str]
) -> KindRow:
    counts = sorted({mean.count for mean in means.values()})
    cases = str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    return KindRow(kind, cases, [cell(means.get(arm)) for arm in arms])


def mean_text(mean: Aggregate | None) -> str:
    """Return a mean with its interval: `61.4 (37.2 to 79.7)`, or why there is none: `61.4 (n = 1)`."""
    if mean is None or mean.mean is None:
        return "–"
    if mean.ci95 is None:
        return f"{number(mean.mean)} ({'n = 1' if mean.count == 1 else mean.method})"
    return f"{number(mean.mean)} ({number(mean.ci95[0])} to {number(mean.ci95[1])})"


def report_text(mean: Aggregate | None) -> str:
    """Return a mean with its interval as reports show it: `61.4 (37.2 to 79.7)`."""
    if mean is None or mean.mean is None or mean.ci95 is None:
        return mean_text(mean)
    return f"{number(mean.mean)} ({interval_words(mean.ci95)})"


def more_text(table: KindTable) -> str:
    """Say how many kinds a table leaves out; empty if none."""
    return f"and {counted(table.more, 'more group')}, none larger" if table.more else ""
